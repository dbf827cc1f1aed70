import { isReadyRowOf } from '../db/task-rows.ts';
import { agentFacts, reasonJoins, reasonOfTask, throttlesOf, waitingTask } from './waiting-facts.sql.ts';

/** The reasons that there can be. */
export const waitingReasons = [
  'DEPENDENCY',
  'NOT_BEFORE',
  'RETRY_BACKOFF',
  'QUEUE_PAUSED',
  'AGENT_PAUSED',
  'NO_WORKER',
  'POOL_BUSY',
  'CONCURRENCY_LIMIT',
  'TOKEN_BUDGET',
  'REQUEST_RATE',
  'PROVIDER_BACKOFF',
  'SERIAL_KEY',
  'BEHIND_OTHERS',
] as const;
export type WaitingReason = (typeof waitingReasons)[number];

// When a throttle h lets the task through as far as is known: of requests, when all windows that are full have moved on.
const opening = `
case h.reason
  when 'REQUEST_RATE' then (
    select case when bool_and(m.at is not null) then max(m.at) end
      from (values (interval '60 s', h.max_requests_per_minute), (interval '1 s', h.max_requests_per_second)) x(span, most)
     cross join lateral (
       select coalesce(sum(u.requests), 0) as used from runplane.throttle_use u where u.throttle_id = h.throttle_id and u.at > now.at - x.span) u
     cross join lateral (select runplane.window_moves(h.throttle_id, now.at, x.span, 0, u.used - x.most + 1) as at) m
     where u.used >= x.most)
  when 'TOKEN_BUDGET' then case when h.tokens_needed > h.token_room
    then runplane.window_moves(h.throttle_id, now.at, interval '60 s', h.tokens_needed - h.token_room, 0) end end`;

/**
 * For each task that waits, why, with what the reason is made of, in one statement for any number of tasks. Tasks that
 * run or are over give no row.
 *
 * Where several throttles hold a task back for its reason, the one that does longest is named.
 *
 * The places are found by the keys that the task row tells: a ready one by its rank, a delayed one by its time.
 */
export const waitingSql = `
with w as materialized (
  select t.id, t.run_id, t.state, t.agent_id, t.priority, t.turn, t.rank, t.serial_key, t.available_at, t.created_at, t.sequence, t.depends_on, t.estimated_tokens
    from runplane.tasks t
   where t.id = any($1) and t.state in ('BLOCKED', 'OPEN') and not exists (select from runplane.leases l where l.task_id = t.id)),
${agentFacts('a.id in (select w.agent_id from w)')}
select w.id, ${reasonOfTask} as reason,
       -- What is blocked again was reopened.
       coalesce(r.ready_at, z.since, y.since, case when w.state = 'BLOCKED' and w.sequence > 1 then w.available_at end, w.created_at) as since,
       w.available_at as "availableAt", w.serial_key as "serialKey",
       v.agent, v.queue, v.agent_limit as "agentLimit", v.agent_used as "agentUsed", v.stopped is not null as stopped,
       v.backoff, v.backoff_until as "backoffUntil", v.dispatch_kind as "dispatchKind",
       case when v.stopped is null and k.reason is null and v.otherwise = 'BEHIND_OTHERS' then (
         select greatest(0, extract(epoch from now.at - v.asked_at))::int from runplane.ready_head(w.agent_id) e where e.task_id = r.task_id)
       end as "nextSinceAskSeconds",
       case when w.state <> 'BLOCKED' then null when u.has_spawned
         then (select array_agg(s.step || ' (' || s.open || ' not over, with what was spawned)' order by s.step) from runplane.run_steps s
                where s.run_id = w.run_id and s.step = any(w.depends_on) and s.open > 0)
         else (select array_agg(distinct d.step order by d.step) from runplane.tasks d
                where d.run_id = w.run_id and d.step = any(w.depends_on) and d.finished_at is null) end as "missingSteps",
       h.name as throttle, h.max_concurrent_tasks as "taskLimit", h.tasks, h.token_limit as "tokenLimit", h.token_room as "tokenRoom",
       h.tokens_needed as "tokensNeeded", h.until as "throttleUntil"
  from w ${reasonJoins}
  left join lateral (
    select h.*, ${opening} as until from ${throttlesOf(waitingTask)} h where h.reason = k.reason order by until desc, h.name limit 1) h on true
  join runplane.runs u on u.id = w.run_id
  left join runplane.ready_tasks r on ${isReadyRowOf('r', 'w')}`;

export interface WaitingRow {
  id: string;
  reason: WaitingReason;
  since: Date;
  availableAt: Date;
  serialKey: string | null;
  agent: string;
  queue: string;
  agentLimit: number | null;
  agentUsed: number;
  /** Whatever throttles say. */
  stopped: boolean;
  /** The throttle that its provider holds back. */
  backoff: string | null;
  backoffUntil: Date | null;
  dispatchKind: 'PULL' | 'INLINE';
  /** Of the task that is claimed next of its agent, how long ago a worker asked for it; null of any other. */
  nextSinceAskSeconds: number | null;
  /** Steps that are not over; in a run in which something was spawned, with how many of their tasks are not. */
  missingSteps: string[] | null;
  /** The throttle that holds the task back, and how it stands for this task. */
  throttle: string | null;
  taskLimit: number | null;
  tasks: number | null;
  tokenLimit: number | null;
  tokenRoom: number | null;
  tokensNeeded: number | null;
  throttleUntil: Date | null;
}
