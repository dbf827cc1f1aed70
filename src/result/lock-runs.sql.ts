import { type JsonColumns, jsonColumns, rowsOf } from '../db/json-columns.ts';
import type { Queryable } from '../db/pool.ts';
import type { RunStatus } from '../domain/status.ts';

/** A run whose row is locked: nothing but a claim can change its tasks meanwhile. */
export interface LockedRun {
  id: string;
  status: RunStatus;
  openTasks: number;
  blockedTasks: number;
  totalTasks: number;
  /** Its steps are counted in run_steps. */
  hasSpawned: boolean;
  sequence: number;
  cancelRequested: boolean;
}

const columns: Readonly<Record<keyof LockedRun, string>> = {
  id: 'x.id',
  status: 'x.status',
  openTasks: 'x.open_tasks',
  blockedTasks: 'x.blocked_tasks',
  totalTasks: 'x.total_tasks',
  hasSpawned: 'x.has_spawned',
  sequence: 'x.sequence',
  cancelRequested: 'x.cancel_requested_at is not null',
};

// In id order, so that two groups with the same runs never wait for each other in a circle. Of no run there is no row.
const lockRuns = (ids: string): string => `
select json_build_object(${jsonColumns(columns)}) as runs from (
select r.id, r.status, r.open_tasks, r.blocked_tasks, r.total_tasks, r.has_spawned, r.sequence, r.cancel_requested_at
  from runplane.runs r where r.id = any(${ids})
 order by r.id for no key update) x having count(*) > 0`;

const ofAttemptsSql = lockRuns(`array(
   select l.run_id from runplane.leases l where l.attempt_id = any($1)
   union
   select a.run_id from runplane.attempts a where a.id = any($1))`);
const byIdSql = lockRuns('$1');

async function lock(
  tx: Queryable,
  name: string,
  text: string,
  ids: readonly string[],
): Promise<Map<string, LockedRun>> {
  const { rows } = await tx.query<{ runs: JsonColumns<LockedRun> }>({
    name,
    text,
    values: [ids],
    readsOnly: true,
  });
  return new Map(rows.flatMap(({ runs }) => rowsOf<LockedRun>(runs)).map((run) => [run.id, run]));
}

/** Locks the runs of attempts: every change of a task but its claim happens under its run's lock. */
export const lockRunsOfAttempts = (
  tx: Queryable,
  attemptIds: readonly string[],
): Promise<Map<string, LockedRun>> => lock(tx, 'lock-runs-of-attempts', ofAttemptsSql, attemptIds);

export const lockRunsById = (tx: Queryable, runIds: readonly string[]): Promise<Map<string, LockedRun>> =>
  lock(tx, 'lock-runs', byIdSql, runIds);
