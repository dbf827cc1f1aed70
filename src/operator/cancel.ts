import { toPublicId } from '../domain/ids.ts';
import { notFound } from '../domain/problems.ts';
import { isTerminal } from '../domain/status.ts';
import { addRunFilter, runsFrom } from '../read/run-filter.ts';
import { addTaskFilter, tasksFrom } from '../read/task-filter.ts';
import { cancelTasks } from '../result/cancel-tasks.ts';
import {
  type ActionsContext,
  act,
  auditStatus,
  overAlready,
  readRunStatus,
  readTask,
  runsOfTasks,
} from './act.ts';
import { bulk } from './bulk.ts';
import type { Actions } from './types.ts';

type Cancels = Pick<Actions, 'cancelTask' | 'cancelRun' | 'cancelTasks' | 'cancelRuns'>;

export const createCancels = (context: ActionsContext & { cancelGraceSeconds: number }): Cancels => ({
  cancelTask: (input, actor) =>
    act(context, input.reason, async (tx, reason) => {
      const task = await readTask(tx, input.taskId);
      if (!task) return notFound('task', toPublicId('task', input.taskId));
      if (isTerminal(task.status)) return overAlready('task', task.status);
      const { taskId } = input;
      const cancelled = await cancelTasks(tx, {
        runIds: [task.runId],
        taskIds: [taskId],
        chooses: () => true,
        wholeRuns: false,
        graceSeconds: context.cancelGraceSeconds,
        reason,
      });
      const taskStatus = (await readTask(tx, taskId))?.status ?? task.status;
      if (cancelled.taskIds.length > 0) {
        await auditStatus(
          tx,
          actor,
          'task.cancel',
          toPublicId('task', taskId),
          task.status,
          taskStatus,
          reason,
        );
      }
      return { kind: 'TaskActionSuccess', taskId, taskStatus };
    }),

  cancelRun: (input, actor) =>
    act(context, input.reason, async (tx, reason) => {
      const before = await readRunStatus(tx, input.runId);
      if (!before) return notFound('run', toPublicId('run', input.runId));
      if (isTerminal(before)) return overAlready('run', before);
      if (before === 'CANCELLING') return { kind: 'RunActionSuccess', runId: input.runId, runStatus: before };
      await cancelTasks(tx, {
        runIds: [input.runId],
        chooses: (task) => task.cancellable,
        wholeRuns: true,
        graceSeconds: context.cancelGraceSeconds,
        reason,
      });
      const runStatus = (await readRunStatus(tx, input.runId)) ?? before;
      await auditStatus(tx, actor, 'run.cancel', toPublicId('run', input.runId), before, runStatus, reason);
      return { kind: 'RunActionSuccess', runId: input.runId, runStatus };
    }),

  cancelTasks: (input, actor) =>
    bulk(context, 'task.cancel', input, actor, {
      from: tasksFrom,
      id: 't.id',
      where: (where) => {
        addTaskFilter(where, input.filter);
        where.and(`t.cancellable and t.state in ('OPEN', 'BLOCKED') and t.cancel_requested_at is null`);
      },
      change: async (tx, ids, reason) => {
        const runIds = await runsOfTasks(tx, ids);
        const cancelled = await cancelTasks(tx, {
          runIds,
          taskIds: ids,
          chooses: () => true,
          wholeRuns: false,
          graceSeconds: context.cancelGraceSeconds,
          reason,
        });
        return cancelled.taskIds;
      },
    }),

  cancelRuns: (input, actor) =>
    bulk(context, 'run.cancel', input, actor, {
      from: runsFrom,
      id: 'r.id',
      where: (where) => {
        addRunFilter(where, input.filter);
        where.and('r.finished_at is null and r.cancel_requested_at is null');
      },
      change: async (tx, ids, reason) => {
        const cancelled = await cancelTasks(tx, {
          runIds: ids,
          chooses: (task) => task.cancellable,
          wholeRuns: true,
          graceSeconds: context.cancelGraceSeconds,
          reason,
        });
        return cancelled.runIds;
      },
    }),
});
