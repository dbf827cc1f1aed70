import { isDelayedRowOf, isReadyRowOf } from '../db/task-rows.ts';
import { liveWorkers } from './workers.ts';

/**
 * For each task that waits, everything that may hold it back, in one statement for any number of tasks. Which of it is
 * named as the reason is decided in code. Tasks that run or are over give no row.
 *
 * The places are found by the keys that the task row tells: a ready one by its rank, a delayed one by its time.
 */
export const waitingSql = `
with now as materialized (select runplane.clock() as at),
w as materialized (
  select t.id, t.run_id, t.state, t.agent_id, t.priority, t.turn, t.rank, t.serial_key, t.available_at, t.created_at, t.depends_on, t.estimated_tokens
    from runplane.tasks t
   where t.id = any($1) and t.state in ('BLOCKED', 'OPEN') and not exists (select from runplane.leases l where l.task_id = t.id)),
of_agents as materialized (
  select a.id, a.name, a.paused, a.max_concurrent_tasks, q.name as queue, q.paused as queue_paused, q.pool_id, q.shared_weight,
         (select count(*) from runplane.leases l where l.agent_id = a.id)::int as used
    from runplane.agents a join runplane.queues q on q.id = a.queue_id where a.id in (select w.agent_id from w)),
states as materialized (
  select s.*, h.name, h.not_before, h.max_concurrent_tasks, h.max_requests_per_minute, h.max_requests_per_second,
         k.task_id as held_task, k.priority_key as held_priority_key, k.slack
    from now cross join runplane.throttle_state(array(
           select distinct x.throttle_id from runplane.agent_throttles x where x.agent_id in (select a.id from of_agents a)), now.at) s
    join runplane.throttles h on h.id = s.throttle_id
    left join lateral runplane.held_head(s.throttle_id, s.token_limit, now.at) k on s.token_limit is not null),
busy as materialized (select l.worker_id, l.pool_id, count(*) as n from runplane.leases l group by l.worker_id, l.pool_id),
-- A worker that names agents is bound by its own slots, one that serves pools by theirs.
serving as materialized (
  select a.id as agent_id, bool_or(case
           when l.pools = '{}' then l.slots is null or l.slots > coalesce((select sum(b.n) from busy b where b.worker_id = l.id), 0)
           else exists (
             select from runplane.pools p where p.name = any(l.pools) and (p.id = a.pool_id or p.elastic and a.shared_weight > 0)
                and p.slots_per_replica > coalesce((select sum(b.n) from busy b where b.worker_id = l.id and b.pool_id = p.id), 0)) end) as has_slot
    from of_agents a join ${liveWorkers} l on a.name = any(l.agents) group by a.id)
select w.id, w.state = 'BLOCKED' as blocked, w.created_at as "createdAt", w.available_at as "availableAt",
       a.name as agent, a.paused as "agentPaused", a.queue, a.queue_paused as "queuePaused",
       a.max_concurrent_tasks as "agentLimit", a.used as "agentUsed",
       v.agent_id is not null as served, coalesce(v.has_slot, false) as "hasSlot",
       case when w.state <> 'BLOCKED' then null when u.has_spawned
         then (select array_agg(s.step order by s.step) from runplane.run_steps s
                where s.run_id = w.run_id and s.step = any(w.depends_on) and s.open > 0)
         else (select array_agg(distinct d.step order by d.step) from runplane.tasks d
                where d.run_id = w.run_id and d.step = any(w.depends_on) and d.finished_at is null) end as "missingSteps",
       y.reason as "delayReason", y.since as "delayedSince", y.available_at <= now.at as "delayIsOver",
       r.ready_at as "readyAt", z.since as "behindKeySince", w.serial_key as "serialKey",
       coalesce((
         select json_agg(json_build_object(
             'name', s.name, 'backoffUntil', case when not s.open then s.not_before end,
             'taskLimit', s.max_concurrent_tasks, 'tasks', s.tasks, 'requestRoom', s.request_room,
             'requestsUntil', case when s.request_room <= 0 then greatest(
                runplane.window_moves(s.throttle_id, now.at, '60 s', 0, s.requests - s.max_requests_per_minute + 1),
                case when s.max_requests_per_second is not null then runplane.window_moves(s.throttle_id, now.at, '1 s', 0, 1) end) end,
             'tokenLimit', s.token_limit, 'tokenRoom', s.token_room, 'tokensNeeded', n.tokens,
             'tokensUntil', case when n.tokens > s.token_room then runplane.window_moves(s.throttle_id, now.at, '60 s', n.tokens - s.token_room, 0) end,
             'passes', coalesce(s.held_task = w.id or -w.priority < s.held_priority_key or n.tokens <= s.slack, true)) order by s.name)
           from runplane.agent_throttles x join states s on s.throttle_id = x.throttle_id
           left join runplane.agent_estimates e on e.agent_id = w.agent_id
           cross join lateral (select least(s.token_limit, runplane.reserved_tokens(
             runplane.expected_tokens(w.estimated_tokens, e), 0, e.seconds)) as tokens) n
          where x.agent_id = w.agent_id), '[]') as throttles
  from w
  cross join now
  join of_agents a on a.id = w.agent_id
  left join serving v on v.agent_id = w.agent_id
  join runplane.runs u on u.id = w.run_id
  left join runplane.ready_tasks r
    on ${isReadyRowOf('r', 'w')}
  left join runplane.delayed_tasks y on ${isDelayedRowOf('y', 'w')}
  left join runplane.serial_tasks z on z.task_id = w.id and exists (
    select from runplane.serial_tasks e where e.agent_id = z.agent_id and e.serial_key = z.serial_key and e.rank < z.rank)`;

/** A limit that the task shares, as it stands for this task. */
export interface ThrottleRoom {
  name: string;
  /** Its provider asked for a pause; ISO 8601. */
  backoffUntil: string | null;
  taskLimit: number | null;
  tasks: number;
  requestRoom: number | null;
  requestsUntil: string | null;
  tokenLimit: number | null;
  tokenRoom: number | null;
  tokensNeeded: number;
  tokensUntil: string | null;
  /** No larger task has waited for so long that this one must not pass it. */
  passes: boolean;
}

export interface WaitingRow {
  id: string;
  blocked: boolean;
  createdAt: Date;
  availableAt: Date;
  agent: string;
  agentPaused: boolean;
  queue: string;
  queuePaused: boolean;
  agentLimit: number | null;
  agentUsed: number;
  /** A live worker asks for tasks of the agent, and one that does has a slot. */
  served: boolean;
  hasSlot: boolean;
  missingSteps: string[] | null;
  delayReason: 'NOT_BEFORE' | 'RETRY_BACKOFF' | null;
  delayedSince: Date | null;
  delayIsOver: boolean | null;
  readyAt: Date | null;
  behindKeySince: Date | null;
  serialKey: string | null;
  throttles: ThrottleRoom[];
}
