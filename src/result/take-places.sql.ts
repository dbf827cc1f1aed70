import type { Queryable } from '../db/pool.ts';
import { isDelayedRowOf, isReadyRowOf } from '../db/task-rows.ts';

/** What the row of a place carries for its task. */
interface Carried {
  sequence: number;
  attempts: number;
}
/** Until when a delayed task waits, why and since when. */
export interface Delay {
  availableAt: Date;
  reason: 'NOT_BEFORE' | 'RETRY_BACKOFF';
  since: Date;
}

/** Where an open task was found: ready, delayed or behind its serial key, or executed by an attempt. */
export type Place =
  | ({ in: 'READY' | 'BEHIND' } & Carried)
  | ({ in: 'DELAYED'; delay: Delay } & Carried)
  | ({ in: 'LEASE'; attemptId: string } & Carried);

// The rows are looked up and then deleted, not joined: a plan made while the queue was short would go through all of it
// for each task.
const takeSql = `
with t as materialized (
  select t.id, t.agent_id, t.priority, t.turn, t.rank, t.available_at from runplane.tasks t where t.id = any($1)),
ready as (
  delete from runplane.ready_tasks r where r.ctid = any(array(
    select x.ctid from t cross join lateral (select p.ctid from runplane.ready_tasks p where ${isReadyRowOf('p', 't')} offset 0) x))
  returning r.task_id, r.sequence, r.attempts),
delayed as (
  delete from runplane.delayed_tasks d where d.ctid = any(array(
    select x.ctid from t cross join lateral (select p.ctid from runplane.delayed_tasks p where ${isDelayedRowOf('p', 't')} offset 0) x))
  returning d.task_id, d.sequence, d.attempts, d.available_at, d.reason, d.since)
select task_id as "taskId", sequence, attempts, null as "availableAt", null as reason, null as since from ready
union all
select task_id, sequence, attempts, available_at, reason, since from delayed`;

const findSql = `
select l.task_id as "taskId", l.sequence, l.number as attempts, l.attempt_id as "attemptId"
  from runplane.leases l where l.task_id = any($1) for update
`;

const behindKeySql = `
select s.task_id as "taskId", s.sequence, s.attempts from runplane.serial_tasks s
 where s.task_id = any($1)
   and exists (select from runplane.serial_tasks b where b.agent_id = s.agent_id and b.serial_key = s.serial_key and b.rank < s.rank)
   and not exists (select from runplane.leases l where l.task_id = s.task_id)`;

interface PlaceRow extends Carried {
  taskId: string;
}
type TakenRow = PlaceRow & (Delay | Record<keyof Delay, null>);

/**
 * Takes open tasks out of the queue, or finds the attempts that execute them. The caller holds the locks of their runs,
 * so nothing but a claim or the mover can move a task meanwhile: a task seen nowhere is between two places and is
 * looked for again, in a statement that sees where it went.
 */
export async function takePlaces(tx: Queryable, taskIds: readonly string[]): Promise<Map<string, Place>> {
  const places = new Map<string, Place>();
  const missing = (): string[] => taskIds.filter((id) => !places.has(id));
  for (let look = 0; look < 5 && missing().length > 0; look++) {
    const taken = await tx.query<TakenRow & Record<string, unknown>>({
      name: 'take-places',
      text: takeSql,
      values: [missing()],
    });
    for (const row of taken.rows) places.set(row.taskId, placeOf(row));
    if (missing().length === 0) break;
    const leased = await tx.query<PlaceRow & { attemptId: string }>({
      name: 'find-leases',
      text: findSql,
      values: [missing()],
    });
    for (const { taskId, ...place } of leased.rows) places.set(taskId, { in: 'LEASE', ...place });
    if (missing().length === 0) break;
    await tx.query({
      name: 'lock-serial-keys',
      // Of all, not of the missing only: they are locked once and in order, also when others of them leave their keys.
      text: 'select runplane.lock_serial_keys($1)',
      values: [taskIds],
    });
    const behind = await tx.query<PlaceRow & Record<string, unknown>>({
      name: 'find-behind-key',
      text: behindKeySql,
      values: [missing()],
    });
    for (const { taskId, sequence, attempts } of behind.rows)
      places.set(taskId, { in: 'BEHIND', sequence, attempts });
  }
  const lost = missing();
  if (lost.length > 0) throw new Error(`Open tasks without a place: ${lost.join(', ')}.`);
  return places;
}

const placeOf = ({ sequence, attempts, availableAt, reason, since }: TakenRow): Place =>
  availableAt === null
    ? { in: 'READY', sequence, attempts }
    : { in: 'DELAYED', sequence, attempts, delay: { availableAt, reason, since } };
