import type { WorkObserver } from '../domain/work-observer.ts';
import type { ActionsContext } from './act.ts';
import { createCancels } from './cancel.ts';
import { createTaskDeletion } from './delete-task.ts';
import { createOrders } from './order.ts';
import { createPurge } from './purge.ts';
import { createEventReplay } from './replay-event.ts';
import { createRerun } from './rerun.ts';
import { createRetries } from './retry.ts';
import type { Actions } from './types.ts';

/** The epoch binds the cursors that reruns give. */
export const createActions = (
  context: ActionsContext & { epoch: string; observer: WorkObserver | null; cancelGraceSeconds: number },
): Actions => ({
  ...createCancels(context),
  ...createRetries(context),
  ...createOrders(context),
  ...createRerun(context),
  ...createEventReplay(context),
  ...createTaskDeletion(context),
  ...createPurge(context),
});
