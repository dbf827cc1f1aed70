import type { Database, Queryable } from '../db/pool.ts';
import { transactionByKey } from '../db/transaction.ts';
import { type IllegalState, isInvalidInput, parsed } from '../domain/problems.ts';
import type { RunStatus, TaskStatus } from '../domain/status.ts';
import { taskStatus } from '../read/task-filter.ts';
import { appendAudit } from './audit.ts';
import { parseOptionalText } from './parse-fields.ts';
import type { Actor } from './types.ts';

export interface ActionsContext {
  db: Database;
  /** Called after each commit that changed something. */
  onCommit: () => void;
}

/** Runs an action in one transaction; what it changed is told after the commit. */
export async function act<Outcome extends { kind: string }>(
  { db, onCommit }: ActionsContext,
  givenReason: string | null | undefined,
  action: (tx: Queryable, reason: string | null) => Promise<Outcome>,
) {
  const reason = parsed(() => parseOptionalText(givenReason, 'reason'));
  if (isInvalidInput(reason)) return reason;
  const outcome = await transactionByKey(db, (tx) => action(tx, reason));
  onCommit();
  return outcome;
}

/** Refuses what comes too late. */
export const overAlready = (what: string, status: TaskStatus | RunStatus): IllegalState => ({
  kind: 'IllegalState',
  message: `The ${what} is ${status} already.`,
  status,
});

export interface TaskToChange {
  runId: string;
  status: TaskStatus;
  priority: number;
  availableAt: Date;
}

/**
 * Under the lock of its run, so that what is decided from it still holds when it is done. The lock is a statement of its
 * own: the next one sees what others did while this one waited. A task that was deleted is no more.
 */
export async function readTask(tx: Queryable, id: string): Promise<TaskToChange | null> {
  await tx.query({
    text: `select from runplane.runs r where r.id = (select t.run_id from runplane.tasks t where t.id = $1) for no key update`,
    values: [id],
  });
  const { rows } = await tx.query<TaskToChange & Record<string, unknown>>({
    text: `select t.run_id as "runId", ${taskStatus} as status, t.priority, t.available_at as "availableAt"
             from runplane.tasks t left join runplane.leases l on l.task_id = t.id where t.id = $1 and t.deleted_at is null`,
    values: [id],
  });
  return rows[0] ?? null;
}

/** Under its lock; null: there is no such run. */
export async function readRunStatus(tx: Queryable, id: string): Promise<RunStatus | null> {
  const { rows } = await tx.query<{ status: RunStatus }>({
    text: 'select status from runplane.runs where id = $1 for no key update',
    values: [id],
  });
  return rows[0]?.status ?? null;
}

/** The audit entry of an action that changed a status. */
export const auditStatus = (
  tx: Queryable,
  actor: Actor,
  action: string,
  target: string,
  before: string,
  after: string,
  reason: string | null,
): Promise<void> =>
  appendAudit(tx, { actor, action, target, before: { status: before }, after: { status: after }, reason });

/** The runs that these tasks belong to. */
export async function runsOfTasks(tx: Queryable, taskIds: readonly string[]): Promise<string[]> {
  const { rows } = await tx.query<{ runId: string }>({
    text: 'select distinct run_id as "runId" from runplane.tasks where id = any($1)',
    values: [taskIds],
  });
  return rows.map(({ runId }) => runId);
}
