import type { Database } from '../db/pool.ts';
import { transactionByKey } from '../db/transaction.ts';
import type { LogPage, Position } from './cursor.ts';
import type { Reading } from './log-reader.ts';

/** An entry of the change log with what filters ask for. Names are those of now, statuses those of the change. */
export interface LoggedChange {
  xid: string;
  number: number;
  sequence: number;
  at: Date;
  runId: string;
  taskId: string | null;
  fromStatus: string | null;
  toStatus: string;
  attemptId: string | null;
  attemptNumber: number | null;
  errorCode: string | null;
  reason: string | null;
  job: string;
  step: string | null;
  agent: string | null;
  queue: string | null;
  customer: string | null;
  labels: Record<string, string>;
  correlationId: string;
  idempotencyKey: string | null;
  /** Of the task or run that changed. */
  createdAt: Date;
}

// Of a run that is being deleted the tasks go first; what became of them is told without their names.
const details = `
c.xid::text as xid, c.id as number, c.sequence, c.at, c.run_id as "runId", c.task_id as "taskId", c.from_status as "fromStatus",
c.to_status as "toStatus", c.attempt_id as "attemptId", c.attempt_number as "attemptNumber", c.error_code as "errorCode", c.reason,
r.job, case when c.task_id is not null then coalesce(t.step, '') end as step, case when c.task_id is not null then coalesce(t.agent, '') end as agent,
t.queue, r.customer, coalesce(t.labels, r.labels) as labels, r.correlation_id as "correlationId",
r.idempotency_key as "idempotencyKey", coalesce(t.created_at, r.created_at) as "createdAt"`;
// Looked up for each entry by its keys: joined, the log would be read as all of the runs and tasks that there are.
const joins = `
cross join lateral (
  select r.customer, r.labels, r.correlation_id, r.idempotency_key, r.created_at, j.name as job
    from runplane.runs r join runplane.jobs j on j.id = r.job_id where r.id = c.run_id offset 0) r
left join lateral (
  select t.step, t.labels, t.created_at, a.name as agent, q.name as queue
    from runplane.tasks t join runplane.agents a on a.id = t.agent_id left join runplane.queues q on q.id = a.queue_id
   where t.id = c.task_id offset 0) t on true`;

/**
 * Everything that became visible since a snapshot, whatever order its transactions committed in; looked up further is only
 * what somebody asks for. Where too much did, as after a time in which nothing could be read, the rest is for the next
 * reading: this one then takes the snapshot for older than it is, as if transactions from some place on had not begun.
 */
const sinceSql = `
with moment as materialized (
  select m.now, coalesce(
           -- All of one transaction, if that is more.
           (select greatest(e.xid, (
              select (f.xid::text::bigint + 1)::text::xid8 from runplane.change_log f
               where f.xid >= pg_snapshot_xmax($1::pg_snapshot) order by f.xid, f.id limit 1))
              from runplane.change_log e where e.xid >= pg_snapshot_xmax($1::pg_snapshot) order by e.xid, e.id limit 1 offset $8),
           pg_snapshot_xmax(m.now)) as xmax
    from (select pg_current_snapshot() as now) m),
snapshot as materialized (
  select pg_snapshot_xmax(m.now) as log_end, format('%s:%s:%s', least(pg_snapshot_xmin(m.now), m.xmax), m.xmax,
           (select string_agg(o.xid::text, ',' order by o.xid) from pg_snapshot_xip(m.now) o(xid) where o.xid < m.xmax))::pg_snapshot as now
    from moment m)
select s.now::text as snapshot, s.log_end::text as end, x.* from snapshot s left join lateral (
  select ${details} from runplane.change_log c ${joins}
   where c.xid >= pg_snapshot_xmin($1::pg_snapshot) and c.xid < pg_snapshot_xmax(s.now)
     and not pg_visible_in_snapshot(c.xid, $1::pg_snapshot)
     and case when c.task_id is null then $3::boolean else $2::boolean end
     and ($4::boolean or c.run_id in (select unnest($5::uuid[])) or c.task_id in (select unnest($6::uuid[]))
          or (select r.correlation_id from runplane.runs r where r.id = c.run_id) in (select unnest($7::text[])))) x on true
 order by x.number`;

/**
 * A page of what a snapshot sees after a position and of the transactions that were open then, oldest transaction first. A transaction gets its id before it waits
 * for locks, so an object's earlier change can have a higher transaction id than its later one. Each entry tells below
 * which id its predecessors are; predecessors beyond the page's end are pulled in front, and come again later. The page
 * is of one snapshot with the mark of what was deleted: it is whole if the position is not before that. Of a scope, the page
 * is what the part that was looked at has of it, which may be nothing.
 */
const pageSql = `
with looked as materialized (
  select c.* from (
    (select e.* from runplane.change_log e where e.xid = any($5::xid8[]) and pg_visible_in_snapshot(e.xid, $3::pg_snapshot)
      order by e.xid, e.id limit $9)
    union all
    (select e.* from runplane.change_log e
      where (e.xid, e.id) > ($1::xid8, $2::bigint) and pg_visible_in_snapshot(e.xid, $3::pg_snapshot)
      order by e.xid, e.id limit $9)) c
   order by c.xid, c.id limit $9),
page as materialized (
  select c.* from looked c
   where ($6::uuid[] is null or c.run_id = any($6)) and ($7::uuid[] is null or c.task_id = any($7))
     and ($8::text is null or (select r.correlation_id from runplane.runs r where r.id = c.run_id) = $8)
   order by c.xid, c.id limit $4),
last as materialized (
  select c.xid, c.id, (select max(seen_before) from page) as seen from (
    (select p.xid, p.id from page p where (select count(*) from page) = $4 order by p.xid desc, p.id desc limit 1)
    union all
    (select l.xid, l.id from looked l where (select count(*) from page) < $4 order by l.xid desc, l.id desc limit 1)) c),
pulled as (
  select c.* from last l cross join lateral (
    select e.* from runplane.change_log e where (e.xid, e.id) > (l.xid, l.id) and e.xid < l.seen and pg_visible_in_snapshot(e.xid, $3::pg_snapshot)
       and ((e.xid, e.id) > ($1::xid8, $2::bigint) or e.xid = any($5::xid8[])) offset 0) c
   where exists (select from page p where p.run_id = c.run_id and p.task_id is not distinct from c.task_id and p.sequence > c.sequence))
select x.*, i.log_deleted_xid::text as "deletedXid", i.log_deleted_id as "deletedNumber",
       (select count(*) from page) = $4 or (select count(*) from looked) = $9 as "isFull",
       (select l.xid::text from last l) as "lastXid", (select l.id from last l) as "lastNumber"
  from runplane.installation i left join lateral (
    select ${details} from (select * from page union all select * from pulled) c ${joins}) x on true
 order by x.number`;

/** What of the log is asked for: all that is of these. Null does not restrict it. */
export interface LogScope {
  runIds: readonly string[] | null;
  taskIds: readonly string[] | null;
  correlationId: string | null;
}
/** The same, of tasks or runs alone or of both. */
export interface ChangeScope extends LogScope {
  of: 'TASKS' | 'RUNS' | 'BOTH';
}

/** So many keys are looked for in what is new; of more everything is read. */
const maxKeys = 1000;

/** One question for all scopes: what it finds is at least what each asks for. */
function union(scopes: Iterable<ChangeScope>): unknown[] {
  const of = new Set<ChangeScope['of']>();
  const runs = new Set<string>();
  const tasks = new Set<string>();
  const correlations = new Set<string>();
  let whole = false;
  for (const { of: which, runIds, taskIds, correlationId } of scopes) {
    of.add(which);
    if (runIds) for (const id of runIds) runs.add(id);
    else if (taskIds) for (const id of taskIds) tasks.add(id);
    else if (correlationId !== null) correlations.add(correlationId);
    else whole = true;
    whole ||= runs.size + tasks.size + correlations.size > maxKeys;
    if (whole && of.has('BOTH')) break;
  }
  const keys = whole ? [[], [], []] : [[...runs], [...tasks], [...correlations]];
  return [of.has('TASKS') || of.has('BOTH'), of.has('RUNS') || of.has('BOTH'), whole, ...keys];
}

/** Entries that one reading looks at: so many take the database a second at most. More are only those of one transaction. */
const readTogether = 10_000;

/** What committed since a snapshot, of what anybody asks for, and the snapshot up to which that goes. */
export async function readSince(
  db: Database,
  snapshot: string,
  scopes: Iterable<ChangeScope>,
  most = readTogether,
): Promise<Reading<LoggedChange>> {
  // As of now, and the same when the transaction is repeated.
  const values = [snapshot, ...union(scopes), most];
  const { rows } = await transactionByKey(db, (tx) =>
    tx.query<LoggedChange & { snapshot: string; end: string }>({
      name: 'changes-since',
      text: sinceSql,
      values,
      readsOnly: true,
    }),
  );
  const [first] = rows;
  if (!first) throw new Error('A reading of the log answered no snapshot.');
  const entries = rows.filter((row) => row.number !== null);
  return { snapshot: first.snapshot, end: BigInt(first.end), entries };
}

/** Without changes there is one row, in which all of a change is null. */
type PageRow = LoggedChange & {
  isFull: boolean;
  lastXid: string | null;
  lastNumber: number | null;
  deletedXid: string;
  deletedNumber: number;
};

const wholeLog: LogScope = { runIds: null, taskIds: null, correlationId: null };

/** Entries that a page of a scope is looked for in: so many take the database some 50 ms. */
const lookedAt = 10_000;

/** The next changes after a position, as a snapshot sees them. */
export async function readPage(
  db: Database,
  after: Position,
  snapshot: string,
  limit: number,
  { runIds, taskIds, correlationId }: LogScope = wholeLog,
): Promise<LogPage<LoggedChange>> {
  const isWhole = runIds === null && taskIds === null && correlationId === null;
  const position = [after.xid.toString(), after.id, snapshot, limit, (after.open ?? []).map(String)];
  const { rows } = await transactionByKey(db, (tx) =>
    tx.query<PageRow>({
      name: 'changes-page',
      text: pageSql,
      values: [...position, runIds, taskIds, correlationId, isWhole ? limit : lookedAt],
    }),
  );
  const [first] = rows;
  return {
    entries: rows.filter((row) => row.number !== null),
    last: first?.lastXid ? { xid: BigInt(first.lastXid), id: first.lastNumber ?? 0 } : null,
    full: first?.isFull ?? false,
    deletedTo: { xid: BigInt(first?.deletedXid ?? 0), id: first?.deletedNumber ?? 0 },
  };
}
