import { enqueueTasks } from '../db/enqueue-tasks.sql.ts';
import type { Queryable } from '../db/pool.ts';
import type { RunPlan } from './plan-run.ts';

/**
 * Inserts runs with all their tasks, each task in its place, and the first entry of each in the change log. One
 * statement for any number of runs; the rows come as two JSON documents, which cost two parameters however many rows
 * there are (more than 65,535 parameters wrap silently in the protocol).
 *
 * A task without dependencies goes to ready_tasks, or to delayed_tasks when its time is yet to come. Those that could
 * be ready are returned instead where any task has a serial key: that one takes its place behind its key, and all take their
 * turns, in a statement of their own, since keys are locked before turns.
 */
const insertRunsSql = `
with moment as materialized (
  select runplane.clock() as now, pg_current_xact_id() as xid, pg_snapshot_xmax(pg_current_snapshot()) as seen_before),
given_runs as materialized (
  select r.*, coalesce(r.available_at, m.now) as starts_at from json_to_recordset($1::json) as r(
    id uuid, job_id uuid, job_version int, config jsonb, correlation_id text, idempotency_key text, serial_key text, debounce_key text,
    customer text, labels jsonb, priority smallint, event_id uuid, route text, total_tasks int, blocked_tasks int, available_at timestamptz, trace_context text)
  cross join moment m),
listed_tasks as materialized (
  select t.*, g.starts_at, g.customer, coalesce(t.priority, g.priority) as own_priority, t.depends_on is not null as blocked,
         t.depends_on is null and g.starts_at <= m.now as starts_now,
         t.depends_on is null and g.starts_at <= m.now and not bool_or(t.serial_key is not null) over () as is_ready
    from rows from (json_to_recordset($2::json) as (
      id uuid, run_id uuid, step text, agent_id uuid, priority smallint, serial_key text, input jsonb,
      depends_on text[], runs_when runplane.step_condition, optional boolean, cancellable boolean, max_attempts int,
      estimated_tokens bigint)) with ordinality as t(id, run_id, step, agent_id, priority, serial_key, input, depends_on, runs_when,
      optional, cancellable, max_attempts, estimated_tokens, n)
    join given_runs g on g.id = t.run_id cross join moment m),
turns as materialized (
  select runplane.take_turns(array_agg(t.agent_id order by t.n), array_agg(t.own_priority order by t.n), array_agg(t.customer order by t.n)) as turn
    from listed_tasks t where t.is_ready),
given_tasks as materialized (
  select t.*, case when t.is_ready then u.turn[t.nth] end as turn, case when t.is_ready then nextval('runplane.enqueue_order') end as rank
    from (select l.*, count(*) filter (where l.is_ready) over (order by l.n) as nth from listed_tasks l order by l.n) t cross join turns u),
new_runs as (
  insert into runplane.runs (id, job_id, job_version, config, correlation_id, idempotency_key, serial_key, debounce_key, customer,
                             labels, priority, event_id, route, open_tasks, blocked_tasks, total_tasks, available_at,
                             created_at, trace_context)
  select g.id, g.job_id, g.job_version, g.config, g.correlation_id, g.idempotency_key, g.serial_key, g.debounce_key, g.customer,
         coalesce(g.labels, '{}'), g.priority, g.event_id, g.route, g.total_tasks, g.blocked_tasks, g.total_tasks, g.starts_at, m.now,
         decode(g.trace_context, 'hex')
    from given_runs g cross join moment m),
new_tasks as (
  insert into runplane.tasks (id, run_id, step, agent_id, state, priority, rank, turn, serial_key, input, depends_on, runs_when,
                              optional, cancellable, max_attempts, estimated_tokens, available_at, created_at)
  select t.id, t.run_id, t.step, t.agent_id, (case when t.blocked then 'BLOCKED' else 'OPEN' end)::runplane.task_state,
         t.own_priority, t.rank, t.turn, t.serial_key, t.input -> 'value', t.depends_on, coalesce(t.runs_when, 'DEPENDENCIES_COMPLETED'),
         coalesce(t.optional, false), coalesce(t.cancellable, true), t.max_attempts,
         t.estimated_tokens, t.starts_at, m.now
    from given_tasks t cross join moment m),
ready as (
  insert into runplane.ready_tasks (agent_id, priority_key, turn, rank, task_id, run_id, sequence, attempts, ready_at)
  select t.agent_id, -t.own_priority, t.turn, t.rank, t.id, t.run_id, 1, 0, m.now from given_tasks t cross join moment m where t.is_ready),
delayed as (
  insert into runplane.delayed_tasks (available_at, task_id, run_id, agent_id, sequence, attempts, reason, since)
  select t.starts_at, t.id, t.run_id, t.agent_id, 1, 0, 'NOT_BEFORE', m.now
    from given_tasks t cross join moment m where not t.starts_now and not t.blocked),
logged as (
insert into runplane.change_log (xid, seen_before, run_id, task_id, sequence, from_status, to_status, at)
select m.xid, m.seen_before, g.id, null::uuid, 1, null::runplane.logged_status, 'QUEUED'::runplane.logged_status, m.now from given_runs g cross join moment m
union all
select m.xid, m.seen_before, t.run_id, t.id, 1, null, (case when t.blocked then 'BLOCKED' else 'ENQUEUED' end)::runplane.logged_status, m.now
  from given_tasks t cross join moment m)
select array(select t.id from given_tasks t where t.starts_now and not t.is_ready order by t.n) as "startLater",
       pg_snapshot_xmin(pg_current_snapshot())::text as position`;

/** Inserts the runs; answers the transaction id before which everything was over: where to watch them from. */
export async function insertRuns(tx: Queryable, plans: readonly RunPlan[]): Promise<bigint> {
  const { rows } = await tx.query<{ startLater: string[]; position: string }>({
    name: 'insert-runs',
    text: insertRunsSql,
    values: [
      JSON.stringify(plans.map((plan) => plan.run)),
      JSON.stringify(plans.flatMap((plan) => plan.tasks)),
    ],
  });
  const { startLater = [], position = '0' } = rows[0] ?? {};
  await enqueueTasks(
    tx,
    startLater.map((taskId) => ({ taskId, sequence: 1, attempts: 0 })),
  );
  return BigInt(position);
}
