import { isDelayedRowOf } from '../db/task-rows.ts';
import { asksFor } from '../db/worker-asks.ts';
import { busySlots, liveWorkers } from './workers.ts';

/*
 * Why tasks wait, decided in SQL, so that the reason of one task and the tasks of one reason come from the same words.
 * The first thing that would have to end is the reason: what the task itself waits for (its steps, its time, its serial
 * key), then what someone stopped, then what is full, then whether anyone is there to do it.
 */

/**
 * What holds back the tasks of agents, as the last of a list of CTEs. stopped: all of them, before any throttle is
 * asked. otherwise: when no throttle holds a task back either. by_task: throttles need to know the task.
 */
export const agentFacts = (agents: string): string => `
now as materialized (select runplane.clock() as at),
of_agents as materialized (
  select a.id, a.name, a.paused, a.max_concurrent_tasks, a.dispatch_kind, q.name as queue, q.paused as queue_paused, q.pool_id, q.shared_weight,
         (select count(*) from runplane.live_leases(a.id))::int as used
    from runplane.agents a join runplane.queues q on q.id = a.queue_id where ${agents}),
states as materialized (
  select s.*, h.name, h.not_before, h.max_concurrent_tasks, h.max_requests_per_minute, h.max_requests_per_second,
         k.task_id as held_task, k.priority_key as held_priority_key, k.slack
    from now cross join runplane.throttle_state(array(
           select distinct x.throttle_id from runplane.agent_throttles x where x.agent_id in (select a.id from of_agents a)), now.at) s
    join runplane.throttles h on h.id = s.throttle_id
    left join lateral runplane.held_head(s.throttle_id, s.token_limit, now.at) k on s.token_limit is not null),
${liveWorkers},
busy as materialized (${busySlots('true')}),
-- A worker that names agents is bound by its own slots, one that claims for a pool by the pool's too.
serving as materialized (
  select a.id as agent_id, max(k.asked_at) as asked_at, bool_or(
           (k.slots is null or k.slots > coalesce((select sum(b.n) from busy b where b.worker_id = k.worker_id), 0))
           and (p.id is null or p.slots_per_replica > coalesce((select sum(b.n) from busy b where b.worker_id = k.worker_id and b.pool_id = p.id), 0))) as has_slot
    from of_agents a cross join asks k left join runplane.pools p on p.id = k.pool_id where ${asksFor('k', 'p', 'a', 'a')} group by a.id),
holds as materialized (
  select a.id as agent_id, a.name as agent, a.queue, a.max_concurrent_tasks as agent_limit, a.used as agent_used,
         b.name as backoff, b.not_before as backoff_until,
         case when a.queue_paused then 'QUEUE_PAUSED' when a.paused then 'AGENT_PAUSED' when b.name is not null then 'PROVIDER_BACKOFF'
              when a.used >= a.max_concurrent_tasks then 'CONCURRENCY_LIMIT' end as stopped,
         a.dispatch_kind, v.asked_at,
         case when v.agent_id is null then 'NO_WORKER' when v.has_slot then 'BEHIND_OTHERS' else 'POOL_BUSY' end as otherwise,
         exists (select from runplane.agent_throttles x join states s on s.throttle_id = x.throttle_id
                  where x.agent_id = a.id and s.token_limit is not null) as by_task
    from of_agents a
    left join serving v on v.agent_id = a.id
    left join lateral (
      select s.name, s.not_before from runplane.agent_throttles x join states s on s.throttle_id = x.throttle_id
       where x.agent_id = a.id and not s.open order by s.not_before desc, s.name limit 1) b on true)`;

/** A task as its throttles see it, in SQL. */
interface TaskTerms {
  agentId: string;
  id: string;
  priority: string;
  estimatedTokens: string;
}

/**
 * The throttles of a task, each with the reason why it holds the task back, by the rules of the claim; null when it does
 * not. That of its tokens it has enough is not all: they may be kept for a larger task that has waited too long to be passed.
 */
export const throttlesOf = (task: TaskTerms): string => `(
    select s.*, n.tokens as tokens_needed, case
             when s.tasks >= s.max_concurrent_tasks then 'CONCURRENCY_LIMIT'
             when s.request_room <= 0 then 'REQUEST_RATE'
             when s.token_limit = 0 or n.tokens > s.token_room then 'TOKEN_BUDGET'
             when not coalesce(s.held_task = ${task.id} or -${task.priority} < s.held_priority_key or n.tokens <= s.slack, true)
             then 'TOKEN_BUDGET' end as reason
      from runplane.agent_throttles x join states s on s.throttle_id = x.throttle_id
      left join runplane.agent_estimates e on e.agent_id = x.agent_id
     cross join lateral (select least(s.token_limit, runplane.reserved_tokens(
       runplane.expected_tokens(${task.estimatedTokens}, e), 0, e.seconds)) as tokens) n
     where x.agent_id = ${task.agentId})`;

/** The first throttle that holds a task back: no row when none does. */
export const holdingThrottle = (task: TaskTerms): string =>
  `(select k.* from ${throttlesOf(task)} k where k.reason is not null order by k.name limit 1)`;

/** That an earlier task of its agent and serial key is not over, of a row of serial_tasks. */
export const isBehindItsKey = (serial: string): string => `exists (
  select from runplane.serial_tasks e
   where e.agent_id = ${serial}.agent_id and e.serial_key = ${serial}.serial_key and e.rank < ${serial}.rank)`;

/** The task w. */
export const waitingTask: TaskTerms = {
  agentId: 'w.agent_id',
  id: 'w.id',
  priority: 'w.priority',
  estimatedTokens: 'w.estimated_tokens',
};

/** The reason of a task w that waits, beside the facts of its agent… */
export const reasonOfTask = `
case when w.state = 'BLOCKED' then 'DEPENDENCY'
     when y.available_at > now.at then y.reason::text
     when z.task_id is not null then 'SERIAL_KEY'
     else coalesce(v.stopped, k.reason, v.otherwise) end`;

/** …and what it is made of. */
export const reasonJoins = `
cross join now
  join holds v on v.agent_id = w.agent_id
  left join lateral ${holdingThrottle(waitingTask)} k on v.stopped is null
  left join runplane.delayed_tasks y on ${isDelayedRowOf('y', 'w')}
  left join runplane.serial_tasks z on z.task_id = w.id and ${isBehindItsKey('z')}`;
