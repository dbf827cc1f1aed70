import type { Database, Queryable } from '../../db/pool.ts';
import { transactionByKey } from '../../db/transaction.ts';
import { nilUuid } from '../../domain/ids.ts';
import { batchRows, type OldPage, oldBound } from './old-pages.ts';

const runsAPage = 500;

const nowSql = `
now as materialized (select runplane.clock() - make_interval(days => $1) as kept_since)`;

// From one run that has events to the next, however many events it has. What is left without its run goes too.
const pageSql = `
with recursive ${nowSql},
bound as materialized (select ${oldBound('$1')} as id),
walk(run_id, n) as (
  (select e.run_id, 1 from runplane.attempt_events e where e.run_id > $2 and e.run_id < (select b.id from bound b) order by e.run_id limit 1)
  union all
  select x.run_id, w.n + 1 from walk w cross join lateral (
    select e.run_id from runplane.attempt_events e where e.run_id > w.run_id and e.run_id < (select b.id from bound b)
     order by e.run_id limit 1) x
   where w.n < ${runsAPage})
select w.run_id as id, (w.n = ${runsAPage}) as "isFull", (r.id is null or r.finished_at < n.kept_since) as old
  from walk w cross join now n left join runplane.runs r on r.id = w.run_id order by w.n`;

// A run that is retried meanwhile is live again: it is asked again under its lock.
const lockSql = `
select r.id from runplane.runs r where r.id = any($1) order by r.id for no key update skip locked`;
const stillSql = `
with ${nowSql}
select x.id from unnest($2::uuid[]) x(id) cross join now n left join runplane.runs r on r.id = x.id
 where r.id is null or r.id = any($3) and r.finished_at < n.kept_since`;
const deleteSql = `
with gone as (
  delete from runplane.attempt_events e using (
    select o.run_id, o.xid, o.id from runplane.attempt_events o where o.run_id = any($1) order by o.run_id, o.xid, o.id limit ${batchRows}) o
   where e.run_id = o.run_id and e.xid = o.xid and e.id = o.id
  returning e.run_id, e.xid),
marked as (
  update runplane.runs r set events_deleted_xid = greatest(r.events_deleted_xid, g.xid)
    from (select o.run_id, max(o.xid) as xid from gone o group by o.run_id) g where r.id = g.run_id)
select count(*)::int as deleted from gone`;

/** The next runs whose attempts' events are kept no longer. */
export async function findRunsOfOldEvents(
  db: Database,
  keptDays: number,
  after: string | null,
): Promise<OldPage> {
  const { rows } = await transactionByKey(db, (tx) =>
    tx.query<{ id: string; isFull: boolean; old: boolean }>({
      name: 'runs-of-old-events',
      text: pageSql,
      values: [keptDays, after ?? nilUuid],
    }),
  );
  const last = rows.at(-1);
  return { ids: rows.filter(({ old }) => old).map(({ id }) => id), after: last?.isFull ? last.id : null };
}

/** Deletes a batch of the events of these runs; cursors before them expire in the same transaction. */
export function deleteOldEvents(
  db: Database,
  keptDays: number,
  runIds: readonly string[],
): Promise<{ deleted: number; all: boolean }> {
  return transactionByKey(db, async (tx) => {
    const locked = await tx.query<{ id: string }>({
      name: 'lock-runs-of-events',
      text: lockSql,
      values: [runIds],
    });
    const still = await tx.query<{ id: string }>({
      name: 'still-runs-of-old-events',
      text: stillSql,
      values: [keptDays, runIds, locked.rows.map(({ id }) => id)],
    });
    const ids = still.rows.map(({ id }) => id);
    const deleted = await deleteEventsOfRuns(tx, ids);
    return { deleted, all: deleted < batchRows };
  });
}

/** A batch of the events of runs that the caller locked; answers how many went. */
export async function deleteEventsOfRuns(tx: Queryable, runIds: readonly string[]): Promise<number> {
  const { rows } = await tx.query<{ deleted: number }>({
    name: 'delete-old-attempt-events',
    text: deleteSql,
    values: [runIds],
  });
  return rows[0]?.deleted ?? 0;
}
