import type { Queryable } from '../db/pool.ts';
import { addConsequences, writeTransition } from './consequences.ts';
import { lockRunsById } from './lock-runs.sql.ts';
import { type RunTask, readRunTasks, readTasks } from './read-run-tasks.sql.ts';
import { takePlaces } from './take-places.sql.ts';
import { TransitionBuilder } from './transition-builder.ts';

export interface CancelRequest {
  runIds: readonly string[];
  /** Which tasks of these runs; absent is all. */
  taskIds?: readonly string[];
  /** Of these the ones that are not over and that this chooses are cancelled. */
  chooses: (task: RunTask) => boolean;
  /** The runs as a whole are cancelled: whatever comes to be in them ends with them. */
  wholeRuns: boolean;
  /** How long a worker has to report; then its lease is taken. */
  graceSeconds: number;
  reason: string | null;
}

const markRunsSql = `
update runplane.runs set cancel_requested_at = runplane.clock() where id = any($1) and cancel_requested_at is null and finished_at is null
returning id`;
const markTasksSql = `
update runplane.tasks set cancel_requested_at = runplane.clock() where id = any($1) and cancel_requested_at is null`;
const requestSql = `
update runplane.leases set cancel_deadline = runplane.clock() + make_interval(secs => $2)
 where attempt_id = any($1) and cancel_deadline is null`;

/** What was cancelled or asked to stop; what was before, or is over, is left alone. */
export interface Cancelled {
  taskIds: string[];
  /** Those that were cancelled as a whole. */
  runIds: string[];
}

/**
 * Cancels tasks: those that wait are over at once, those that are executed are asked to stop and are over when their
 * worker reports, or when the grace time takes their lease.
 */
export async function cancelTasks(tx: Queryable, request: CancelRequest): Promise<Cancelled> {
  const { runIds, taskIds, chooses, wholeRuns, graceSeconds, reason } = request;
  const runs = await lockRunsById(tx, runIds);
  const marked = wholeRuns
    ? await tx.query<{ id: string }>({ name: 'mark-runs-cancelled', text: markRunsSql, values: [runIds] })
    : { rows: [] };
  if (wholeRuns) for (const run of runs.values()) run.cancelRequested = true;
  const tasks = taskIds ? await readTasks(tx, taskIds) : await readRunTasks(tx, runIds);
  const chosen = tasks.filter(
    (task) => (task.state === 'OPEN' || task.state === 'BLOCKED') && !task.cancelRequested && chooses(task),
  );
  const open = chosen.filter((task) => task.state === 'OPEN');
  const places = await takePlaces(
    tx,
    open.map((task) => task.id),
  );

  const builder = new TransitionBuilder();
  const executed: string[] = [];
  for (const task of chosen) {
    const place = places.get(task.id);
    if (place?.in === 'LEASE') executed.push(place.attemptId);
    else if (place) builder.cancelWaiting(task, 'ENQUEUED', place.sequence, reason);
    else builder.cancelWaiting(task, 'BLOCKED', task.sequence, reason);
  }
  const ids = chosen.map((task) => task.id);
  await tx.query({ name: 'mark-tasks-cancelled', text: markTasksSql, values: [ids] });
  if (executed.length > 0)
    await tx.query({ name: 'request-cancel', text: requestSql, values: [executed, graceSeconds] });
  await addConsequences(tx, builder, runs, { reason: wholeRuns ? reason : null });
  await writeTransition(tx, builder);
  return { taskIds: ids, runIds: marked.rows.map(({ id }) => id) };
}
