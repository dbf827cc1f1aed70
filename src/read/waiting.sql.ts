import { isReadyRowOf } from '../db/task-rows.ts';
import { agentFacts, reasonJoins, reasonOfTask } from './waiting-facts.sql.ts';

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

/**
 * For each task that waits, why, with what the reason is made of, in one statement for any number of tasks. Tasks that
 * run or are over give no row.
 *
 * The places are found by the keys that the task row tells: a ready one by its rank, a delayed one by its time.
 */
export const waitingSql = `
with w as materialized (
  select t.id, t.run_id, t.state, t.agent_id, t.priority, t.turn, t.rank, t.serial_key, t.available_at, t.created_at, t.depends_on, t.estimated_tokens
    from runplane.tasks t
   where t.id = any($1) and t.state in ('BLOCKED', 'OPEN') and not exists (select from runplane.leases l where l.task_id = t.id)),
${agentFacts('a.id in (select w.agent_id from w)')}
select w.id, ${reasonOfTask} as reason,
       coalesce(r.ready_at, z.since, y.since, w.created_at) as since, w.available_at as "availableAt", w.serial_key as "serialKey",
       v.agent, v.queue, v.agent_limit as "agentLimit", v.agent_used as "agentUsed", v.stopped is not null as stopped,
       v.backoff, v.backoff_until as "backoffUntil",
       case when w.state <> 'BLOCKED' then null when u.has_spawned
         then (select array_agg(s.step order by s.step) from runplane.run_steps s
                where s.run_id = w.run_id and s.step = any(w.depends_on) and s.open > 0)
         else (select array_agg(distinct d.step order by d.step) from runplane.tasks d
                where d.run_id = w.run_id and d.step = any(w.depends_on) and d.finished_at is null) end as "missingSteps",
       k.name as throttle, k.max_concurrent_tasks as "taskLimit", k.tasks, k.token_limit as "tokenLimit", k.token_room as "tokenRoom",
       k.tokens_needed as "tokensNeeded", case k.reason
         when 'REQUEST_RATE' then greatest(
           runplane.window_moves(k.throttle_id, now.at, '60 s', 0, k.requests - k.max_requests_per_minute + 1),
           case when k.max_requests_per_second is not null then runplane.window_moves(k.throttle_id, now.at, '1 s', 0, 1) end)
         when 'TOKEN_BUDGET' then case when k.tokens_needed > k.token_room
           then runplane.window_moves(k.throttle_id, now.at, '60 s', k.tokens_needed - k.token_room, 0) end end as "throttleUntil"
  from w ${reasonJoins}
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
