import type { Queryable } from '../../db/pool.ts';
import { isDelayedRowOf, isReadyRowOf } from '../../db/task-rows.ts';
import type { Place, StrayRow } from './find-suspects.sql.ts';

/** What a row knew of its task before it was taken away. */
export interface RemovedStray {
  taskId: string;
  sequence: number;
  /** Attempts that had been made. */
  attempts: number;
}

// A row may have gone since it was seen, and another may be stored there: what it is decides, not where it is.
const removeSql = (table: string, isStray: string, attempts: string): string => `
delete from runplane.${table} p
 where p.ctid = any($1::tid[]) and p.run_id = $2 and (${isStray})
returning p.task_id as "taskId", p.sequence, ${attempts} as attempts`;

const task = (condition: string): string =>
  `not exists (select from runplane.tasks t where t.id = p.task_id and ${condition})`;

const byPlace: Record<Place, string> = {
  READY: removeSql('ready_tasks', task(`t.state = 'OPEN' and ${isReadyRowOf('p', 't')}`), 'p.attempts'),
  DELAYED: removeSql('delayed_tasks', task(`t.state = 'OPEN' and ${isDelayedRowOf('p', 't')}`), 'p.attempts'),
  // Behind a key and leased are found by the task: only without one is the row a stray.
  SERIAL: removeSql('serial_tasks', task('true'), 'p.attempts'),
  LEASE: removeSql('leases', task('true'), 'p.number - 1'),
};

/** Takes away rows of a run's places that belong to no task that would know of them. */
export async function removeStrays(
  tx: Queryable,
  runId: string,
  strays: readonly StrayRow[],
): Promise<RemovedStray[]> {
  const removed: RemovedStray[] = [];
  for (const place of ['READY', 'DELAYED', 'LEASE', 'SERIAL'] as const) {
    const ctids = strays.filter((stray) => stray.place === place).map(({ ctid }) => ctid);
    if (ctids.length === 0) continue;
    const { rows } = await tx.query<RemovedStray & Record<string, unknown>>({
      name: `remove-stray-${place.toLowerCase()}`,
      text: byPlace[place],
      values: [ctids, runId],
    });
    removed.push(...rows);
  }
  return removed;
}

const removeReadySql = `
delete from runplane.ready_tasks r using runplane.tasks t where t.id = any($1) and ${isReadyRowOf('r', 't')}`;
const removeDelayedSql = `
delete from runplane.delayed_tasks d using runplane.tasks t where t.id = any($1) and ${isDelayedRowOf('d', 't')}`;
const removeLeaseSql = 'delete from runplane.leases where task_id = any($1)';

export interface Removals {
  ready: string[];
  delayed: string[];
  /** Leases whose attempt is recorded already. */
  lease: string[];
}

/** Takes places from the tasks with these ids. */
export async function removePlaces(tx: Queryable, removals: Removals): Promise<void> {
  const statements = [
    { name: 'remove-ready', text: removeReadySql, ids: removals.ready },
    { name: 'remove-delayed', text: removeDelayedSql, ids: removals.delayed },
    { name: 'remove-leases', text: removeLeaseSql, ids: removals.lease },
  ];
  for (const { name, text, ids } of statements)
    if (ids.length > 0) await tx.query({ name, text, values: [ids] });
}
