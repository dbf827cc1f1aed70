import type { Database, Queryable } from '../db/pool.ts';
import { transaction } from '../db/transaction.ts';
import { toPublicId } from '../domain/ids.ts';
import { type IllegalState, isInvalidInput, notFound, parsed } from '../domain/problems.ts';
import { isTerminal, type RunStatus, type TaskStatus } from '../domain/status.ts';
import { addRunFilter, runsFrom } from '../read/run-filter.ts';
import { addTaskFilter, taskStatus, tasksFrom } from '../read/task-filter.ts';
import { cancelTasks } from '../result/cancel-tasks.ts';
import { appendAudit } from './audit.ts';
import { bulk } from './bulk.ts';
import { parseOptionalText } from './parse-fields.ts';
import type { Actions, Actor } from './types.ts';

export interface ActionsContext {
  db: Database;
  /** Called after each commit that changed something. */
  onCommit: () => void;
}

export const createActions = (context: ActionsContext): Actions => ({
  cancelTask: (input, actor) =>
    act(context, input.reason, async (tx, reason) => {
      const task = await readTask(tx, input.taskId);
      if (!task) return notFound('task', toPublicId('task', input.taskId));
      if (isTerminal(task.status)) return isOver('task', task.status);
      const { taskId } = input;
      const changed = await cancelTasks(tx, {
        runIds: [task.runId],
        chooses: ({ id }) => id === taskId,
        wholeRuns: false,
        reason,
      });
      const taskStatus = (await readTask(tx, taskId))?.status ?? task.status;
      if (changed.length > 0) {
        await audit(tx, actor, 'task.cancel', toPublicId('task', taskId), task.status, taskStatus, reason);
      }
      return { kind: 'TaskActionSuccess', taskId, taskStatus };
    }),

  cancelRun: (input, actor) =>
    act(context, input.reason, async (tx, reason) => {
      const before = await readRun(tx, input.runId);
      if (!before) return notFound('run', toPublicId('run', input.runId));
      if (isTerminal(before)) return isOver('run', before);
      if (before === 'CANCELLING') return { kind: 'RunActionSuccess', runId: input.runId, runStatus: before };
      await cancelTasks(tx, {
        runIds: [input.runId],
        chooses: (task) => task.cancellable,
        wholeRuns: true,
        reason,
      });
      const runStatus = (await readRun(tx, input.runId)) ?? before;
      await audit(tx, actor, 'run.cancel', toPublicId('run', input.runId), before, runStatus, reason);
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
        const chosen = new Set(ids);
        const { rows } = await tx.query<{ runId: string }>({
          text: 'select distinct run_id as "runId" from runplane.tasks where id = any($1)',
          values: [ids],
        });
        const runIds = rows.map(({ runId }) => runId);
        return cancelTasks(tx, { runIds, chooses: ({ id }) => chosen.has(id), wholeRuns: false, reason });
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
        await cancelTasks(tx, { runIds: ids, chooses: (task) => task.cancellable, wholeRuns: true, reason });
        return ids;
      },
    }),
});

/** Runs an action in one transaction; what it changed is told after the commit. */
async function act<Outcome extends { kind: string }>(
  { db, onCommit }: ActionsContext,
  givenReason: string | null | undefined,
  action: (tx: Queryable, reason: string | null) => Promise<Outcome>,
) {
  const reason = parsed(() => parseOptionalText(givenReason, 'reason'));
  if (isInvalidInput(reason)) return reason;
  const outcome = await transaction(db, (tx) => action(tx, reason));
  onCommit();
  return outcome;
}

const isOver = (what: string, status: TaskStatus | RunStatus): IllegalState => ({
  kind: 'IllegalState',
  message: `The ${what} is ${status} already.`,
  status,
});

/** Under the lock of its run, so that what is decided from it still holds when it is done. */
async function readTask(tx: Queryable, id: string): Promise<{ runId: string; status: TaskStatus } | null> {
  const { rows } = await tx.query<{ runId: string; status: TaskStatus }>({
    text: `select t.run_id as "runId", ${taskStatus} as status from runplane.tasks t join runplane.runs r on r.id = t.run_id
             left join runplane.leases l on l.task_id = t.id where t.id = $1 for no key update of r`,
    values: [id],
  });
  return rows[0] ?? null;
}

async function readRun(tx: Queryable, id: string): Promise<RunStatus | null> {
  const { rows } = await tx.query<{ status: RunStatus }>({
    text: 'select status from runplane.runs where id = $1 for no key update',
    values: [id],
  });
  return rows[0]?.status ?? null;
}

const audit = (
  tx: Queryable,
  actor: Actor,
  action: string,
  target: string,
  before: string,
  after: string,
  reason: string | null,
): Promise<void> =>
  appendAudit(tx, { actor, action, target, before: { status: before }, after: { status: after }, reason });
