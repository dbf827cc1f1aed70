import type { Queryable } from '../db/pool.ts';
import type { Json } from '../domain/json.ts';
import type { RunPlan } from './plan-run.ts';

export interface DebounceKey {
  jobId: string;
  debounceKey: string;
}

/** A run that launches with its key still change: none of its tasks could be claimed yet. */
export interface WaitingRun extends DebounceKey {
  runId: string;
  jobVersion: number;
  collect: boolean;
  /** The configs collected so far; null when it collects none. */
  items: Json[] | null;
  firstLaunchAt: Date;
  position: bigint;
}

export interface DebounceState {
  waiting: WaitingRun[];
  /** The database's clock, with all locks held. */
  now: Date;
  /** Where to watch a run from that this transaction makes. */
  position: bigint;
}

// Sorted, so that two groups with the same keys never wait for each other in a circle.
const lockKeysSql = `
select pg_advisory_xact_lock(k.hash) from (
  select distinct hashtextextended(g.job_id::text || g.debounce_key, 4) as hash
    from unnest($1::uuid[], $2::text[]) as g(job_id, debounce_key) order by 1) k`;

const lockRunsSql = `
select r.id from unnest($1::uuid[], $2::text[]) as g(job_id, debounce_key)
  join runplane.debounces b on b.job_id = g.job_id and b.debounce_key = g.debounce_key
  join runplane.runs r on r.id = b.run_id
 where r.status = 'QUEUED' and r.cancel_requested_at is null
 order by r.id for no key update of r`;

// The tasks' times are those of their delayed rows, because their runs are locked. A row that the mover holds is waited
// for and gone then, and with it the run is no longer waiting: what is locked here stays delayed until the commit.
const readWaitingSql = `
with roots as materialized (
  select t.run_id, t.id, t.available_at from runplane.tasks t where t.run_id = any($1) and t.depends_on is null),
delayed as materialized (
  select d.run_id from runplane.delayed_tasks d
   where (d.available_at, d.task_id) in (select o.available_at, o.id from roots o)
   order by d.available_at, d.task_id for update)
select json_agg(x) as waiting from (
  select b.job_id as "jobId", b.debounce_key as "debounceKey", r.id as "runId", r.job_version as "jobVersion", b.collect,
         case when b.collect then r.config -> 'items' end as items, b.first_launch_at as "firstLaunchAt", b.position::text as position
    from unnest($2::uuid[], $3::text[]) as g(job_id, debounce_key)
    join runplane.debounces b on b.job_id = g.job_id and b.debounce_key = g.debounce_key
    join runplane.runs r on r.id = b.run_id and r.id = any($1)
   where (select count(*) from roots o where o.run_id = r.id) = (select count(*) from delayed d where d.run_id = r.id)) x`;

const momentSql = `select runplane.clock() as now, pg_snapshot_xmin(pg_current_snapshot())::text as position`;

/**
 * Locks these keys and the runs that wait under them, tasks' places included: until the commit nobody else launches with
 * the keys, and no task of the runs is made ready, cancelled or claimed.
 */
export async function lockDebounces(tx: Queryable, keys: readonly DebounceKey[]): Promise<DebounceState> {
  const given = columnsOf(keys);
  await tx.query({ name: 'lock-debounce-keys', text: lockKeysSql, values: given });
  const { rows: runs } = await tx.query<{ id: string }>({
    name: 'lock-debounced-runs',
    text: lockRunsSql,
    values: given,
  });
  type Read = Omit<WaitingRun, 'firstLaunchAt' | 'position'> & { firstLaunchAt: string; position: string };
  const { rows: read } = await tx.query<{ waiting: Read[] | null }>({
    name: 'read-debounced-runs',
    text: readWaitingSql,
    values: [runs.map(({ id }) => id), ...given],
  });
  const { rows: moments } = await tx.query<{ now: Date; position: string }>({
    name: 'debounce-moment',
    text: momentSql,
  });
  const [moment] = moments;
  if (!moment) throw new Error('The database told no time.');
  const waiting = (read[0]?.waiting ?? []).map((run) => ({
    ...run,
    firstLaunchAt: new Date(run.firstLaunchAt),
    position: BigInt(run.position),
  }));
  return { waiting, now: moment.now, position: BigInt(moment.position) };
}

// Everything of the run is that of its newest launch but its id, its version and when it was made. Its tasks are in
// no place but delayed_tasks, so nothing else knows their times, priorities and serial keys.
const changeRunsSql = `
with given_runs as materialized (
  select * from json_to_recordset($1::json) as r(id uuid, config jsonb, correlation_id text, idempotency_key text,
    serial_key text, customer text, labels jsonb, priority smallint, available_at timestamptz, trace_context text)),
given_tasks as materialized (
  select t.*, g.available_at, coalesce(t.priority, g.priority) as own_priority
    from json_to_recordset($2::json) as t(run_id uuid, step text, priority smallint, serial_key text, input jsonb,
      max_attempts int, estimated_tokens bigint)
    join given_runs g on g.id = t.run_id),
changed_runs as (
  update runplane.runs r set config = g.config, correlation_id = g.correlation_id, idempotency_key = g.idempotency_key,
         serial_key = g.serial_key, customer = g.customer, labels = coalesce(g.labels, '{}'), priority = g.priority,
         available_at = g.available_at, trace_context = decode(g.trace_context, 'hex')
    from given_runs g where r.id = g.id),
moved as (
  update runplane.delayed_tasks d set available_at = g.available_at
    from given_tasks g join runplane.tasks t on t.run_id = g.run_id and t.step = g.step
   where d.available_at = t.available_at and d.task_id = t.id)
update runplane.tasks t set priority = g.own_priority, serial_key = g.serial_key, input = g.input -> 'value',
       max_attempts = g.max_attempts, estimated_tokens = g.estimated_tokens, available_at = g.available_at
  from given_tasks g where t.run_id = g.run_id and t.step = g.step`;

/** Makes waiting runs, which are locked, what these plans say. */
export async function changeRuns(tx: Queryable, plans: readonly RunPlan[]): Promise<void> {
  if (plans.length === 0) return;
  await tx.query({
    name: 'change-debounced-runs',
    text: changeRunsSql,
    values: [
      JSON.stringify(plans.map(({ run }) => run)),
      JSON.stringify(plans.flatMap(({ tasks }) => tasks)),
    ],
  });
}

export interface DebounceRow extends DebounceKey {
  runId: string;
  collect: boolean;
  firstLaunchAt: Date;
  startsAt: Date;
  position: bigint;
}

const saveSql = `
insert into runplane.debounces (job_id, debounce_key, run_id, collect, first_launch_at, starts_at, position)
select * from json_to_recordset($1::json) as g("jobId" uuid, "debounceKey" text, "runId" uuid, collect boolean,
  "firstLaunchAt" timestamptz, "startsAt" timestamptz, position xid8)
on conflict (job_id, debounce_key) do update set run_id = excluded.run_id, collect = excluded.collect,
   first_launch_at = excluded.first_launch_at, starts_at = excluded.starts_at, position = excluded.position`;

// Twice as many as were written are looked at, so that the table has the keys that are in use and not all that ever
// were. What another launch holds is in use; so this waits for nobody.
const lockPastSql = `
with now as materialized (select runplane.clock() as at)
select b.job_id as "jobId", b.debounce_key as "debounceKey" from runplane.debounces b, now n
 where b.starts_at < n.at order by b.starts_at limit $1 for update of b skip locked`;

// A statement of its own: it has to see the places that launches gave to these runs before the rows were locked.
const forgetSql = `
delete from runplane.debounces b using unnest($1::uuid[], $2::text[]) as g(job_id, debounce_key)
 where b.job_id = g.job_id and b.debounce_key = g.debounce_key
   and not exists (select from runplane.delayed_tasks d where d.available_at = b.starts_at and d.run_id = b.run_id)`;

/**
 * Remembers which runs wait under their keys, and forgets some that do no longer. After everything else of the
 * transaction: whether a run waits is for its tasks to say.
 */
export async function saveDebounces(tx: Queryable, rows: readonly DebounceRow[]): Promise<void> {
  if (rows.length === 0) return;
  const given = rows.map((row) => ({ ...row, position: row.position.toString() }));
  await tx.query({ name: 'save-debounces', text: saveSql, values: [JSON.stringify(given)] });
  const { rows: past } = await tx.query<DebounceKey & Record<string, unknown>>({
    name: 'lock-past-debounces',
    text: lockPastSql,
    values: [2 * rows.length],
  });
  if (past.length > 0) await tx.query({ name: 'forget-debounces', text: forgetSql, values: columnsOf(past) });
}

const columnsOf = (keys: readonly DebounceKey[]): string[][] => [
  keys.map(({ jobId }) => jobId),
  keys.map(({ debounceKey }) => debounceKey),
];
