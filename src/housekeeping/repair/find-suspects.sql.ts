import type { Database } from '../../db/pool.ts';
import { isDelayedRowOf, isReadyRowOf, memberOf } from '../../db/task-rows.ts';
import { transactionByKey } from '../../db/transaction.ts';
import { nilUuid } from '../../domain/ids.ts';
import { isMiscounted } from '../../result/step-counts.sql.ts';
import { placeCount } from './place-conditions.ts';

/** A row of a place that should not be there. It is known by where it is stored, since its key may be the fault. */
export interface StrayRow {
  place: Place;
  ctid: string;
  runId: string;
}

export type Place = 'READY' | 'DELAYED' | 'SERIAL' | 'LEASE';

/** At most so many in one piece of a round; the rest is for the next one. */
const maxSuspects = 100;
const runsAPiece = 2000;
const blocksAPiece = 50;

// One statement has one snapshot, and every change of a run with its tasks and their places is one transaction: what is
// inconsistent here is so in the database. Only runs in which nothing changed for the threshold are looked at.
const runsSql = `
with now as materialized (select c.at, c.at - make_interval(secs => $2) as quiet_since from (select runplane.clock() as at) c),
page as materialized (
  select r.id, r.finished_at, r.created_at, r.open_tasks, r.blocked_tasks, r.total_tasks, r.has_spawned
    from runplane.runs r where r.id > $1 order by r.id limit ${runsAPiece}),
suspects as materialized (
  select p.id from page p cross join now n cross join lateral (
    select count(*) filter (where t.state in ('OPEN', 'BLOCKED')) as open, count(*) filter (where t.state = 'BLOCKED') as blocked,
           count(*) as total, max(greatest(t.created_at, t.finished_at)) as changed_at
      from runplane.tasks t where t.run_id = p.id) c
   where p.finished_at is null and p.created_at < n.quiet_since and c.changed_at < n.quiet_since is not false
     and (c.open = 0 or (c.open, c.blocked, c.total) <> (p.open_tasks, p.blocked_tasks, p.total_tasks)
       or c.blocked > 0 and exists (
         select from runplane.tasks b where b.run_id = p.id and b.state = 'BLOCKED' and case when p.has_spawned
           then not exists (select from runplane.run_steps s where s.run_id = p.id and s.open > 0 and s.step = any(b.depends_on))
           else not exists (
             select from runplane.tasks d where d.run_id = p.id and d.state in ('OPEN', 'BLOCKED')
                and ${memberOf('d')} && b.depends_on) end)
       or ${isMiscounted('p')}
       or exists (
         select from runplane.tasks t where t.run_id = p.id and t.state = 'OPEN'
            and (t.available_at < n.quiet_since or t.available_at > n.at) and ${placeCount} <> 1))
   order by p.id limit ${maxSuspects})
select array(select s.id from suspects s order by s.id) as suspects, (select count(*) from page)::int as looked,
       (select p.id from page p order by p.id desc limit 1) as last`;

export interface SuspectRuns {
  runIds: string[];
  /** Where to go on; null: these were the last runs. */
  after: string | null;
}

/** The next runs that are not terminal and in which something does not fit together. */
export async function findSuspectRuns(
  db: Database,
  after: string | null,
  thresholdSeconds: number,
): Promise<SuspectRuns> {
  const values = [after ?? nilUuid, thresholdSeconds];
  const { rows } = await transactionByKey(db, (tx) =>
    tx.query<{ suspects: string[]; looked: number; last: string | null }>({
      name: 'suspect-runs',
      text: runsSql,
      values,
    }),
  );
  const { suspects = [], looked = 0, last = null } = rows[0] ?? {};
  if (suspects.length === maxSuspects) return { runIds: suspects, after: suspects.at(-1) ?? null };
  return { runIds: suspects, after: looked === runsAPiece ? last : null };
}

// By blocks of the table: the scan is as cheap as the table is small, and needs no key that a fault could have changed.
const strayRows = (table: string, at: string, isRowOf: string): string => `
with now as materialized (select runplane.clock() - make_interval(secs => $3) as quiet_since)
select p.ctid::text as ctid, p.run_id as "runId"
  from runplane.${table} p cross join now n
  left join runplane.tasks t on t.id = p.task_id
  left join runplane.runs r on r.id = p.run_id
 where p.ctid >= format('(%s,0)', $1::bigint)::tid and p.ctid < format('(%s,0)', $2::bigint)::tid and p.${at} < n.quiet_since
   and (t.id is null or r.finished_at < n.quiet_since or t.state <> 'OPEN' and t.finished_at < n.quiet_since is not false
     or t.state = 'OPEN' and not (${isRowOf}))
 order by p.run_id`;

/** True of any row: its key says nothing but the task. */
const anyRow = 'true';

const tables: Record<Place, { table: string; text: string }> = {
  READY: { table: 'ready_tasks', text: strayRows('ready_tasks', 'ready_at', isReadyRowOf('p', 't')) },
  DELAYED: { table: 'delayed_tasks', text: strayRows('delayed_tasks', 'since', isDelayedRowOf('p', 't')) },
  SERIAL: { table: 'serial_tasks', text: strayRows('serial_tasks', 'since', anyRow) },
  LEASE: { table: 'leases', text: strayRows('leases', 'started_at', anyRow) },
};

/** Rows of places, from a block of their table on, whose tasks are not open or do not know of them. */
export async function findStrayRows(
  db: Database,
  place: Place,
  fromBlock: number,
  thresholdSeconds: number,
): Promise<{ rows: StrayRow[]; nextBlock: number | null }> {
  const { table, text } = tables[place];
  const { rows: sizes } = await db.query<{ blocks: number }>({
    name: `blocks-of-${table}`,
    text: `select pg_relation_size('runplane.${table}') / current_setting('block_size')::bigint as blocks`,
  });
  const end = fromBlock + blocksAPiece;
  const { rows } = await transactionByKey(db, (tx) =>
    tx.query<{ ctid: string; runId: string }>({
      name: `stray-rows-of-${table}`,
      text,
      values: [fromBlock, end, thresholdSeconds],
    }),
  );
  const nextBlock = end < (sizes[0]?.blocks ?? 0) ? end : null;
  return { rows: rows.map((row) => ({ place, ...row })), nextBlock };
}
