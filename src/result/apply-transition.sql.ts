import type { Queryable } from '../db/pool.ts';
import type { Transition } from './transition.ts';

/**
 * Carries out a transition: attempts end, tasks end or are enqueued, runs follow, and each change is logged, in one
 * statement for any number of them. Everything was decided before, under the locks of the runs; nothing is decided
 * here. An attempt that ended elsewhere meanwhile would mean that a lock was missing.
 */
const applySql = `
with moment as materialized (
  select runplane.clock() as now, pg_current_xact_id() as xid, pg_snapshot_xmax(pg_current_snapshot()) as seen_before),
ends as materialized (select * from json_to_recordset($1::json) as e(
  attempt_id uuid, status runplane.attempt_status, counted boolean, sanitized boolean, digest text, error_code text,
  error_kind runplane.error_kind, error_message text, confidence float8, trace_id text, external_run_id text,
  task_to runplane.logged_status, output jsonb)),
-- Looked up and not joined: a plan made while there were few leases would compare each of them with each end.
held as materialized (
  select e.*, l.task_id, l.run_id, l.agent_id, l.number, l.sequence, l.worker_id, l.started_at, l.settled_tokens from ends e cross join lateral (
    select x.* from runplane.leases x where x.attempt_id = e.attempt_id offset 0) l),
gone as (
  delete from runplane.leases l where l.attempt_id = any(array(select e.attempt_id from ends e)) returning l.attempt_id),
task_ends as materialized (
  select e.task_id, e.run_id, 'PROCESSING'::runplane.logged_status as from_status, e.task_to as to_status, e.sequence + 1 as sequence,
         e.attempt_id, e.number as attempt_number, e.output, e.confidence,
         case when e.task_to = 'FAILED' then e.error_code end as error_code,
         case when e.task_to = 'FAILED' then e.error_kind end as error_kind,
         case when e.task_to = 'FAILED' then e.error_message end as error_message, null::text as reason
    from held e where e.task_to is not null
  union all
  select * from json_to_recordset($2::json) as t(
    task_id uuid, run_id uuid, from_status runplane.logged_status, to_status runplane.logged_status, sequence int,
    attempt_id uuid, attempt_number int, output jsonb, confidence float8, error_code text,
    error_kind runplane.error_kind, error_message text, reason text)),
enqueued as materialized (select q.*, case when q.delay_seconds > 0 then coalesce(q.not_before, m.now + make_interval(secs => q.delay_seconds)) end as available_at
  from json_to_recordset($3::json) as q(
  task_id uuid, run_id uuid, agent_id uuid, from_status runplane.logged_status, sequence int, attempts int,
  attempt_id uuid, attempt_number int, delay_seconds float8, delay_reason runplane.delay_reason, not_before timestamptz, input jsonb,
  error_code text, reason text) cross join moment m),
runs as materialized (select * from json_to_recordset($4::json) as r(
  run_id uuid, closed_tasks int, unblocked_tasks int, spawned_tasks int, newly_blocked_tasks int, to_status runplane.run_status, from_status runplane.run_status,
  sequence int, failed_task_id uuid, reason text)),
ended as (
  insert into runplane.attempts (id, task_id, run_id, number, status, counted, worker_id, external_run_id, trace_id,
    error_code, error_kind, error_message, sanitized, confidence, result_digest, compute_cost,
    started_at, finished_at)
  select e.attempt_id, e.task_id, e.run_id, e.number, e.status, coalesce(e.counted, false), e.worker_id, e.external_run_id, e.trace_id,
         e.error_code, e.error_kind, e.error_message, coalesce(e.sanitized, false), e.confidence,
         decode(e.digest, 'hex'), coalesce(round(a.compute_cost_per_hour * extract(epoch from m.now - e.started_at) / 3600, 12), 0),
         e.started_at, m.now
    from held e join runplane.agents a on a.id = e.agent_id cross join moment m),
learned as (
  insert into runplane.settled_attempts (attempt_id, agent_id, tokens, expected_tokens, seconds)
  select e.attempt_id, e.agent_id, runplane.tokens_of_attempt(e.task_id, e.attempt_id),
         (select t.estimated_tokens from runplane.tasks t where t.id = e.task_id), extract(epoch from m.now - e.started_at)
    from held e cross join moment m where e.settled_tokens > 0),
finished as (
  update runplane.tasks t set state = e.to_status::text::runplane.task_state, output = e.output -> 'value',
         confidence = e.confidence, sequence = e.sequence, finished_at = m.now, error_code = e.error_code,
         error_kind = e.error_kind, error_message = e.error_message
    from task_ends e cross join moment m where t.id = e.task_id),
forgotten as (
  delete from runplane.task_progress p where p.task_id = any(array(select e.task_id from task_ends e))),
opened as (
  update runplane.tasks t set state = 'OPEN', sequence = q.sequence, input = case when q.input is null then t.input else q.input -> 'value' end,
         available_at = coalesce(q.available_at, t.available_at)
    from enqueued q where t.id = q.task_id),
delayed as (
  insert into runplane.delayed_tasks (available_at, task_id, run_id, agent_id, sequence, attempts, reason, since)
  select q.available_at, q.task_id, q.run_id, q.agent_id, q.sequence, q.attempts, q.delay_reason, m.now
    from enqueued q cross join moment m where q.available_at is not null),
followed as (
  update runplane.runs r set open_tasks = r.open_tasks + coalesce(c.spawned_tasks, 0) - c.closed_tasks,
         blocked_tasks = r.blocked_tasks + coalesce(c.newly_blocked_tasks, 0) - coalesce(c.unblocked_tasks, 0),
         total_tasks = r.total_tasks + coalesce(c.spawned_tasks, 0),
         status = coalesce(c.to_status, r.status), sequence = c.sequence,
         failed_task_id = coalesce(r.failed_task_id, c.failed_task_id),
         finished_at = case when c.to_status in ('COMPLETED', 'FAILED', 'CANCELLED') then m.now end
    from runs c cross join moment m where r.id = c.run_id),
logged as (
  insert into runplane.change_log (xid, seen_before, run_id, task_id, sequence, from_status, to_status, attempt_id, attempt_number, error_code, reason, at)
  select m.xid, m.seen_before, x.* from moment m cross join (
  select e.run_id, e.task_id, e.sequence, e.from_status, e.to_status, e.attempt_id, e.attempt_number, e.error_code, e.reason, m.now
    from task_ends e cross join moment m
  union all
  select q.run_id, q.task_id, q.sequence, q.from_status, 'ENQUEUED', q.attempt_id, q.attempt_number, q.error_code, q.reason, m.now
    from enqueued q cross join moment m
  union all
  select c.run_id, null, c.sequence, c.from_status::text::runplane.logged_status, c.to_status::text::runplane.logged_status,
         null, null, null, c.reason, m.now
    from runs c cross join moment m where c.to_status is not null) x)
select runplane.must_be_equal((select count(*) from gone), (select count(*) from ends), 'attempts that end and had a lease')`;

/** Writes a transition; the transaction fails when an attempt that it ends has no lease. */
export async function applyTransition(
  tx: Queryable,
  { attemptEnds, taskEnds, enqueued, runs }: Transition,
): Promise<void> {
  await tx.send({
    name: 'apply-transition',
    text: applySql,
    values: [
      JSON.stringify(attemptEnds),
      JSON.stringify(taskEnds),
      JSON.stringify(enqueued),
      JSON.stringify(runs),
    ],
  });
}
