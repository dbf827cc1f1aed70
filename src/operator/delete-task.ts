import { toPublicId } from '../domain/ids.ts';
import { notFound } from '../domain/problems.ts';
import { isTerminal } from '../domain/status.ts';
import { eraseTask } from '../result/erase-task.sql.ts';
import { type ActionsContext, act, readTask } from './act.ts';
import { appendAudit } from './audit.ts';
import type { Actions } from './types.ts';

export const createTaskDeletion = (context: ActionsContext): Pick<Actions, 'deleteTask'> => ({
  deleteTask: (input, actor) =>
    act(context, input.reason, async (tx, reason) => {
      const { taskId } = input;
      const target = toPublicId('task', taskId);
      const task = await readTask(tx, taskId);
      if (!task) return notFound('task', target);
      const { status } = task;
      if (!isTerminal(status)) {
        const message = `The task is ${status}; only completed, failed and cancelled ones can be deleted.`;
        return { kind: 'IllegalState', message, status };
      }
      await eraseTask(tx, taskId);
      await appendAudit(tx, {
        actor,
        action: 'task.delete',
        target,
        before: { status },
        after: null,
        reason,
      });
      return { kind: 'TaskActionSuccess', taskId, taskStatus: status };
    }),
});
