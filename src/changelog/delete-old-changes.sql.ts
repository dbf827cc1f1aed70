import type { Database } from '../db/pool.ts';
import { statement } from '../db/transaction.ts';

// Always the first entries in the log's order, so that one position tells what is gone. Times ascend with that order but
// for transactions that overlap: the first entry that is kept ends the batch. An entry from the horizon on stays, since a
// transaction that is still open may write one before it.
const deleteSql = `
with now as materialized (
  select runplane.clock() - make_interval(days => $1) as kept_since, pg_snapshot_xmin(pg_current_snapshot()) as horizon),
mark as materialized (select i.log_deleted_xid as xid, i.log_deleted_id as id from runplane.installation i),
page as materialized (
  select c.xid, c.id, c.at from runplane.change_log c
   where (c.xid, c.id) > ((select m.xid from mark m), (select m.id from mark m)) order by c.xid, c.id limit $2),
kept as materialized (
  select p.xid, p.id from page p cross join now n where p.at >= n.kept_since or p.xid >= n.horizon order by p.xid, p.id limit 1),
old as materialized (
  select p.xid, p.id from page p where not exists (select from kept k where (p.xid, p.id) >= (k.xid, k.id))),
gone as (
  delete from runplane.change_log c using old o where c.xid = o.xid and c.id = o.id returning c.id),
marked as (
  update runplane.installation i set log_deleted_xid = l.xid, log_deleted_id = l.id
    from (select o.xid, o.id from old o order by o.xid desc, o.id desc limit 1) l)
select count(*)::int as deleted from gone`;

/** Deletes a batch of the oldest changes; cursors before them expire in the same transaction. Answers how many went. */
export async function deleteOldChanges(db: Database, keptDays: number, batch: number): Promise<number> {
  const { rows } = await statement<{ deleted: number }>(db, {
    name: 'delete-old-changes',
    text: deleteSql,
    values: [keptDays, batch],
  });
  return rows[0]?.deleted ?? 0;
}
