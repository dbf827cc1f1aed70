import { toPublicId } from '../domain/ids.ts';
import { isInvalidInput, notFound, parsed } from '../domain/problems.ts';
import { isTerminal } from '../domain/status.ts';
import { parsePriority } from '../domain/task-fields.ts';
import { changePriority, runTaskNow } from '../result/change-order.ts';
import { type ActionsContext, act, overAlready, readTask, type TaskToChange } from './act.ts';
import { appendAudit } from './audit.ts';
import type { Actions } from './types.ts';

type Orders = Pick<Actions, 'runTaskNow' | 'setTaskPriority'>;

export const createOrders = (context: ActionsContext): Orders => ({
  runTaskNow: ({ taskId }, actor) =>
    act(context, null, async (tx) => {
      const target = toPublicId('task', taskId);
      const task = await readTask(tx, taskId);
      if (!task) return notFound('task', target);
      if (isTerminal(task.status)) return overAlready('task', task.status);
      if (!(await runTaskNow(tx, taskId))) {
        const message = `The task is ${task.status} and waits for no time; only scheduled ones and those that back off can be run now.`;
        return { kind: 'IllegalState', message, status: task.status };
      }
      const now = (await readTask(tx, taskId)) ?? task;
      await appendAudit(tx, {
        actor,
        action: 'task.run_now',
        target,
        before: order(task),
        after: order(now),
      });
      return { kind: 'TaskActionSuccess', taskId, taskStatus: now.status };
    }),

  setTaskPriority: async (input, actor) => {
    const { taskId } = input;
    const priority = parsed(() => parsePriority(input.priority, 'priority'));
    if (isInvalidInput(priority)) return priority;
    return act(context, null, async (tx) => {
      const target = toPublicId('task', taskId);
      const task = await readTask(tx, taskId);
      if (!task) return notFound('task', target);
      if (isTerminal(task.status)) return overAlready('task', task.status);
      if (task.priority !== priority) {
        await changePriority(tx, { id: taskId, isBlocked: task.status === 'BLOCKED' }, priority);
        const before = { priority: task.priority };
        await appendAudit(tx, { actor, action: 'task.set_priority', target, before, after: { priority } });
      }
      const taskStatus = (await readTask(tx, taskId))?.status ?? task.status;
      return { kind: 'TaskActionSuccess', taskId, taskStatus };
    });
  },
});

const order = ({ priority, availableAt }: TaskToChange): object => ({ priority, availableAt });
