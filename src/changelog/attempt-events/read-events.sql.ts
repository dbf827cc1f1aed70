import type { Database } from '../../db/pool.ts';
import { transactionByKey } from '../../db/transaction.ts';
import { limits } from '../../domain/limits.ts';
import type { LogPage, Position } from '../cursor.ts';
import type { Reading } from '../log-reader.ts';
import { endOf } from '../snapshot.ts';
import type { AttemptEvent } from '../types.ts';

/** Whose events: of a run, of a task of it, or of an attempt of that task. */
export interface EventScope {
  runId: string;
  taskId: string | null;
  attemptId: string | null;
}

export interface LoggedEvent extends AttemptEvent {
  xid: string;
  runId: string;
  /** Of its type and data. */
  bytes: number;
}

const columns = `
e.xid::text as xid, e.id as number, e.run_id as "runId", e.task_id as "taskId", e.attempt_id as "attemptId", e.sequence, e.type, e.at, e.data, e.bytes`;

/** As of the change log, but only what somebody here follows: all events of these runs, and of these tasks. */
const sinceSql = `
with snapshot as materialized (select pg_current_snapshot() as now)
select s.now::text as snapshot, x.* from snapshot s left join lateral (
  select ${columns} from runplane.attempt_events e
   where e.run_id = any($2) and e.xid >= pg_snapshot_xmin($1::pg_snapshot) and not pg_visible_in_snapshot(e.xid, $1::pg_snapshot)
  union all
  select ${columns} from runplane.attempt_events e
   where e.task_id = any($3) and e.run_id <> all($2) and e.xid >= pg_snapshot_xmin($1::pg_snapshot)
     and not pg_visible_in_snapshot(e.xid, $1::pg_snapshot)) x on true
 order by x.number`;

/**
 * A page as of the change log, but cut where it gets too large to be sent at once. Appends of one attempt wait for each
 * other with their transaction's id given, so here too an event can have a higher one than its successor.
 */
const pageSql = (key: 'run_id' | 'task_id'): string => `
with read as materialized (
  select c.*, sum(c.bytes) over (order by c.xid, c.id) - c.bytes as bytes_before from (
    (select e.* from runplane.attempt_events e
      where e.${key} = $6 and ($7::uuid is null or e.attempt_id = $7) and e.xid = any($5::xid8[]) and pg_visible_in_snapshot(e.xid, $3::pg_snapshot)
      order by e.xid, e.id limit $4)
    union all
    (select e.* from runplane.attempt_events e
      where e.${key} = $6 and ($7::uuid is null or e.attempt_id = $7) and (e.xid, e.id) > ($1::xid8, $2::bigint)
        and pg_visible_in_snapshot(e.xid, $3::pg_snapshot)
      order by e.xid, e.id limit $4)
    order by xid, id limit $4) c),
page as materialized (select r.* from read r where r.bytes_before < ${limits.streamBufferBytes}),
last as materialized (select p.xid, p.id, (select max(seen_before) from page) as seen from page p order by p.xid desc, p.id desc limit 1),
pulled as (
  select c.* from last l cross join lateral (
    select e.*, 0 from runplane.attempt_events e
     where e.${key} = $6 and ($7::uuid is null or e.attempt_id = $7) and (e.xid, e.id) > (l.xid, l.id) and e.xid < l.seen
       and pg_visible_in_snapshot(e.xid, $3::pg_snapshot) and ((e.xid, e.id) > ($1::xid8, $2::bigint) or e.xid = any($5::xid8[])) offset 0) c
   where exists (select from page p where p.attempt_id = c.attempt_id and p.sequence > c.sequence))
select x.*, d.xid::text as "deletedXid" from (select (select r.events_deleted_xid from runplane.runs r where r.id = $8) as xid) d
  left join lateral (
    select ${columns}, (select count(*) from page) < (select count(*) from read) or (select count(*) from read) = $4 as "isFull",
           (select l.xid::text from last l) as "lastXid", (select l.id from last l) as "lastNumber"
      from (select * from page union all select * from pulled) e) x on true
 order by x.number`;
const pageOfRunSql = pageSql('run_id');
const pageOfTaskSql = pageSql('task_id');

/** What committed since a snapshot, and the snapshot up to which that goes. */
export async function readEventsSince(
  db: Database,
  snapshot: string,
  scopes: Iterable<EventScope>,
): Promise<Reading<LoggedEvent>> {
  const runs = new Set<string>();
  const tasks = new Set<string>();
  for (const { runId, taskId } of scopes) {
    if (taskId === null) runs.add(runId);
    else tasks.add(taskId);
  }
  const { rows } = await transactionByKey(db, (tx) =>
    tx.query<LoggedEvent & { snapshot: string }>({
      name: 'attempt-events-since',
      text: sinceSql,
      values: [snapshot, [...runs], [...tasks]],
    }),
  );
  const now = rows[0]?.snapshot ?? snapshot;
  return { snapshot: now, end: endOf(now), entries: rows.filter((row) => row.number !== null) };
}

/** Without events there is one row, in which all of an event is null. */
type PageRow = LoggedEvent & {
  isFull: boolean | null;
  lastXid: string | null;
  lastNumber: number | null;
  deletedXid: string | null;
};

const pageSize = 200;

/** The next events after a position, as a snapshot sees them. */
export async function readEventPage(
  db: Database,
  { runId, taskId, attemptId }: EventScope,
  after: Position,
  snapshot: string,
): Promise<LogPage<LoggedEvent>> {
  const position = [after.xid.toString(), after.id, snapshot, pageSize, (after.open ?? []).map(String)];
  const { rows } = await transactionByKey(db, (tx) =>
    tx.query<PageRow>({
      name: taskId === null ? 'attempt-events-of-run' : 'attempt-events-of-task',
      text: taskId === null ? pageOfRunSql : pageOfTaskSql,
      values: [...position, taskId ?? runId, attemptId, runId],
    }),
  );
  const [first] = rows;
  return {
    entries: rows.filter((row) => row.number !== null),
    last: first?.lastXid ? { xid: BigInt(first.lastXid), id: first.lastNumber ?? 0 } : null,
    full: first?.isFull ?? false,
    // Whole transactions are deleted, so what follows is the next one.
    deletedTo: { xid: first?.deletedXid ? BigInt(first.deletedXid) + 1n : 0n, id: 0 },
  };
}
