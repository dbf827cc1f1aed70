import { expect } from 'vitest';
import type { Queryable } from '../../src/db/pool.ts';

/** Each statement selects what breaks one of the rules that always hold; no rows is right. */
const invariants: Record<string, string> = {
  'an open task has exactly one place, any other none': `
    select t.id, t.state, p.places from runplane.tasks t
      left join (
        select p.task_id, count(*) as places from (
          select task_id from runplane.ready_tasks
          union all select task_id from runplane.delayed_tasks
          union all select task_id from runplane.leases
          union all select s.task_id from runplane.serial_tasks s where exists (
                select from runplane.serial_tasks b where b.agent_id = s.agent_id and b.serial_key = s.serial_key and b.rank < s.rank)
                and not exists (select from runplane.leases l where l.task_id = s.task_id)
                and not exists (select from runplane.delayed_tasks d where d.task_id = s.task_id)) p
         group by p.task_id) p on p.task_id = t.id
     where coalesce(p.places, 0) <> (t.state = 'OPEN')::int`,
  'no place belongs to a task that does not exist': `
    select task_id from (select task_id from runplane.ready_tasks union all select task_id from runplane.delayed_tasks
      union all select task_id from runplane.leases union all select task_id from runplane.serial_tasks) p
     where not exists (select from runplane.tasks t where t.id = p.task_id)`,
  'a terminal or blocked task is behind no serial key': `
    select s.task_id from runplane.serial_tasks s join runplane.tasks t on t.id = s.task_id where t.state <> 'OPEN'`,
  'no agent or throttle is above its limit': `
    select a.name from runplane.agents a where a.max_concurrent_tasks < (select count(*) from runplane.leases l where l.agent_id = a.id)
    union all
    select t.name from runplane.throttles t where t.max_concurrent_tasks < (
      select count(*) from runplane.leases l join runplane.agent_throttles x on x.agent_id = l.agent_id where x.throttle_id = t.id)`,
  'attempt numbers have no gaps': `
    select task_id, array_agg(number order by number) from (
      select task_id, number from runplane.attempts union all select task_id, number from runplane.leases) a
     group by task_id having max(number) <> count(*) or min(number) <> 1 or count(distinct number) <> count(*)`,
  'the change-log sequence of each task and run has no gaps': `
    select run_id, task_id from runplane.change_log group by run_id, task_id
    having max(sequence) - min(sequence) + 1 <> count(*) or count(distinct sequence) <> count(*)
        or min(sequence) <> 1 and (select log_deleted_xid from runplane.installation) = '0'`,
  'each change starts where the one before ended': `
    select * from (
      select run_id, task_id, sequence, from_status, lag(to_status) over (partition by run_id, task_id order by sequence) as before
        from runplane.change_log) c
     where c.from_status is distinct from c.before and (c.before is not null or c.sequence = 1)`,
  'nothing is left of a run or a task that is gone': `
    select 'task', t.id from runplane.tasks t where not exists (select from runplane.runs r where r.id = t.run_id)
    union all
    select x.what, x.task_id from (
      select 'attempt' as what, task_id from runplane.attempts union all select 'usage', task_id from runplane.usage
      union all select 'progress', task_id from runplane.task_progress union all select 'dead letter', task_id from runplane.dead_letters
      union all select 'materialization', task_id from runplane.materializations) x
     where not exists (select from runplane.tasks t where t.id = x.task_id)`,
  'the change log is in order by its numbers and says who came before': `
    select a.id from (
      select id, xid, seen_before, lag(id) over object as id_before, lag(xid) over object as xid_before
        from runplane.change_log window object as (partition by run_id, task_id order by sequence)) a
     where a.id_before > a.id or a.xid_before >= a.seen_before and a.xid_before <> a.xid`,
  'the last change is the status of the task': `
    select t.id, t.state, c.to_status from runplane.tasks t
      join (select distinct on (task_id) task_id, to_status from runplane.change_log where task_id is not null
             order by task_id, sequence desc) c on c.task_id = t.id
     where c.to_status::text <> case when t.state <> 'OPEN' then t.state::text
       when exists (select from runplane.leases l where l.task_id = t.id) then 'PROCESSING' else 'ENQUEUED' end`,
  'the last change is the status of the run': `
    select r.id, r.status, c.to_status, r.sequence, c.sequence from runplane.runs r
      join (select distinct on (run_id) run_id, to_status, sequence from runplane.change_log where task_id is null
             order by run_id, sequence desc) c on c.run_id = r.id
     where c.to_status::text <> r.status::text or c.sequence <> r.sequence`,
  'a run counts its tasks': `
    select r.id, r.open_tasks, r.blocked_tasks, r.total_tasks from runplane.runs r join lateral (
      select count(*) filter (where state in ('OPEN', 'BLOCKED')) as open, count(*) filter (where state = 'BLOCKED') as blocked, count(*) as total
        from runplane.tasks t where t.run_id = r.id) t on true
     where (r.open_tasks, r.blocked_tasks, r.total_tasks) <> (t.open, t.blocked, t.total)`,
  'a run is terminal when all its tasks are': `
    select r.id, r.status from runplane.runs r where (r.finished_at is not null) <> (r.open_tasks = 0)`,
  'a queued run has no attempt': `
    select r.id from runplane.runs r where r.status = 'QUEUED' and (
      exists (select from runplane.leases l where l.run_id = r.id) or exists (select from runplane.attempts a where a.run_id = r.id))`,
  'a blocked task waits for a step that is not over': `
    select t.id from runplane.tasks t where t.state = 'BLOCKED' and not exists (
      select from runplane.tasks d where d.run_id = t.run_id and coalesce(d.member_of, array[d.step]) && t.depends_on and d.state in ('OPEN', 'BLOCKED'))`,
  'the steps of a run with spawned tasks are counted, and of no other': `
    with members as (
      select t.run_id, m.step, count(*) filter (where t.finished_at is null) as open,
             count(*) filter (where t.state in ('FAILED', 'CANCELLED') and not t.optional) as broken
        from runplane.tasks t join runplane.runs r on r.id = t.run_id and r.has_spawned
       cross join unnest(coalesce(t.member_of, array[t.step])) m(step) group by t.run_id, m.step),
    joins as (
      select t.run_id, d.step, count(*) as joined from runplane.tasks t cross join unnest(t.depends_on) d(step)
       where t.state <> 'BLOCKED' group by t.run_id, d.step)
    select * from (
      select m.run_id, m.step, m.open, m.broken, coalesce(j.joined, 0) as joined
        from members m left join joins j on j.run_id = m.run_id and j.step = m.step) m
      full join runplane.run_steps s on s.run_id = m.run_id and s.step = m.step
     where (m.open, m.broken, m.joined) is distinct from (s.open::bigint, s.broken::bigint, s.joined::bigint)`,
  'who waits for a step of a run with spawned tasks is written down, and nobody else': `
    with waits as (
      select t.run_id, m.step as waiting_step, d.step, t.id as task_id from runplane.tasks t
        join runplane.runs r on r.id = t.run_id and r.has_spawned
       cross join unnest(coalesce(t.member_of, array[t.step])) m(step) cross join unnest(t.depends_on) d(step)
       where t.state = 'BLOCKED')
    (select * from waits except select run_id, waiting_step, step, task_id from runplane.step_waits) union all
    (select run_id, waiting_step, step, task_id from runplane.step_waits except select * from waits)`,
  'a spawned task belongs to the steps above it, and to a completed task of its run': `
    select t.id from runplane.tasks t left join runplane.tasks p on p.id = t.parent_task_id and p.run_id = t.run_id
      join runplane.runs r on r.id = t.run_id
     where t.parent_task_id is not null and (r.has_spawned and p.state = 'COMPLETED'
       and coalesce(t.member_of, array[t.step]) @> coalesce(p.member_of, array[p.step])) is not true and (r.finished_at is null or p.id is not null and r.has_spawned)
        or t.parent_task_id is null and t.member_of is not null`,
  'a task that failed for good has one dead letter': `
    select t.id from runplane.tasks t where t.state = 'FAILED' and t.error_code <> 'DEPENDENCY_FAILED'
       and not exists (select from runplane.dead_letters d where d.task_id = t.id) and t.deleted_at is null
       and not exists (select from runplane.audit_entries u where u.action = 'dead_letter.purge.bulk' and u.at >= t.finished_at)`,
  'a ready task is found by its priority, turn and rank': `
    select r.task_id from runplane.ready_tasks r join runplane.tasks t on t.id = r.task_id 
     where (r.priority_key, r.turn, r.rank) is distinct from ((-t.priority)::smallint, t.turn, t.rank)`,
  'API tokens are created and revoked with one audit entry each': `
    select t.tokens, a.entries from
      (select count(*) + count(*) filter (where k.revoked_at is not null) as tokens from runplane.api_tokens k) t,
      (select count(*) as entries from runplane.audit_entries u where u.action in ('api_token.create', 'api_token.revoke')) a
     where t.tokens <> a.entries`,
  'no lease and no first ready task is before where claims begin to look': `
    select a.id from runplane.agents a join runplane.scan_starts s on s.agent_id = a.id
     where exists (select from runplane.leases l where l.agent_id = a.id and l.claim_seq < s.lease_from)
        or exists (select from runplane.ready_tasks r where r.agent_id = a.id and r.priority_key = s.priority_key and (r.turn, r.rank) < (s.turn, s.rank))`,
  'nothing is asked for by a worker that is gone': `
    select k.worker_id from runplane.worker_asks k where not exists (select from runplane.workers w where w.id = k.worker_id)`,
  'of a deleted task no payload is left': `
    select t.id from runplane.tasks t where t.deleted_at is not null and (t.input is not null or t.output is not null or t.error_message is not null
       or exists (select from runplane.dead_letters d where d.task_id = t.id)
       or exists (select from runplane.task_progress p where p.task_id = t.id)
       or exists (select from runplane.attempts a where a.task_id = t.id and a.error_message is not null)
       or exists (select from runplane.usage u where u.task_id = t.id and u.raw is not null)
       or exists (select from runplane.attempt_events e where e.task_id = t.id)
       or exists (select from runplane.materializations m where m.task_id = t.id and m.metadata is not null))`,
  'of a task that is over no progress is kept': `
    select p.task_id from runplane.task_progress p join runplane.tasks t on t.id = p.task_id where t.finished_at is not null`,
  'events of an attempt are numbered without gaps, in the order in which they were written, and counted': `
    select x.attempt_id from (
      select coalesce(e.attempt_id, c.attempt_id) as attempt_id, e.run_id, c.last_sequence, c.bytes, e.events, e.total
        from (select e.attempt_id, e.run_id, array_agg(e.sequence order by e.id) as events, sum(e.bytes) as total
                from runplane.attempt_events e group by e.attempt_id, e.run_id) e
        full join runplane.attempt_event_counts c on c.attempt_id = e.attempt_id) x
      left join lateral (
        select a.run_id from runplane.attempts a where a.id = x.attempt_id union
        select l.run_id from runplane.leases l where l.attempt_id = x.attempt_id) a on true
      left join runplane.runs r on r.id = a.run_id
     where r.events_deleted_xid is null
       and (coalesce(x.events, '{}') is distinct from array(select generate_series(1, x.last_sequence)) or coalesce(x.total, 0) <> x.bytes)`,
  'attempt events belong to an attempt of their task and run': `
    select e.id from runplane.attempt_events e where not exists (
      select from (select a.id, a.task_id, a.run_id from runplane.attempts a union all select l.attempt_id, l.task_id, l.run_id from runplane.leases l) x
       where x.id = e.attempt_id and x.task_id = e.task_id and x.run_id = e.run_id)`,
  'what was taken over completed without an attempt': `
    select t.id from runplane.tasks t where t.taken_over_from is not null and (t.state <> 'COMPLETED'
       or exists (select from runplane.attempts a where a.task_id = t.id))`,
  'a task and its delayed place have one time': `
    select t.id from runplane.tasks t join runplane.delayed_tasks d on d.task_id = t.id where d.available_at <> t.available_at`,
  'of one job and debounce key at most one run waits for its time': `
    select r.job_id, r.debounce_key from runplane.runs r
     where r.debounce_key is not null and r.status = 'QUEUED' and not exists (
       select from runplane.tasks t where t.run_id = r.id and t.depends_on is null
          and not exists (select from runplane.delayed_tasks d where d.task_id = t.id))
     group by r.job_id, r.debounce_key having count(*) > 1`,
  'an idempotency record points at what it made': `
    select i.object_id from runplane.idempotency_records i
     where not exists (select from runplane.runs r where r.id = i.object_id) and not exists (select from runplane.events e where e.id = i.object_id)`,
  'an event knows the routes that launched': `
    select r.id from runplane.runs r join runplane.events e on e.id = r.event_id where r.route <> all(e.launched_routes)
    union all
    select e.id from runplane.events e where e.rejection is not null and e.launched_routes <> '{}'`,
  'a rejected event of a broker has one incident, which is open as long as it is rejected': `
    select e.id from runplane.events e left join lateral (
      select count(*) as incidents, bool_or(i.resolved_at is null) as open from runplane.ingest_incidents i
       where i.event_id = e.id and i.kind in ('POISON', 'CONFLICT')) i on true
     where e.source = 'NATS' and (e.rejection is not null or i.incidents > 0)
       and (i.incidents <> 1 or i.open <> (e.rejection is not null))`,
  'usage belongs to an attempt': `
    select u.id from runplane.usage u where not exists (select from runplane.attempts a where a.id = u.attempt_id)
       and not exists (select from runplane.leases l where l.attempt_id = u.attempt_id)`,
  'no production waits for an input that was produced, nor has it already': `
    select w.materialization_id from runplane.awaited_inputs w
     where exists (select from runplane.materializations m where m.correlation_id = w.correlation_id and m.asset_id = w.asset_id)
        or exists (select from runplane.materialization_inputs x join runplane.materializations i on i.id = x.input_id
                    where x.materialization_id = w.materialization_id and i.asset_id = w.asset_id)`,
  'a production has at most one input of each asset': `
    select x.materialization_id from runplane.materialization_inputs x join runplane.materializations i on i.id = x.input_id
     group by x.materialization_id, i.asset_id having count(*) > 1`,
  'what was materialized is of a completed task': `
    select m.id from runplane.materializations m join runplane.tasks t on t.id = m.task_id where t.state <> 'COMPLETED'`,
};

/** Proves on the database itself that everything holds that always has to. */
export async function expectInvariants(db: Queryable): Promise<void> {
  for (const [rule, text] of Object.entries(invariants)) {
    const { rows } = await db.query({ text });
    expect(rows, rule).toEqual([]);
  }
}
