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
  select t.id, t.run_id, t.state, t.agent_id, t.priority, t.turn, t.rank, t.serial_key, t.available_at, t.created_at, t.depends_on
    from runplane.tasks t
   where t.id = any($1) and t.state in ('BLOCKED', 'OPEN') and not exists (select from runplane.leases l where l.task_id = t.id)),
agent_use as materialized (
  select x.agent_id, (select count(*) from runplane.leases l where l.agent_id = x.agent_id)::int as used
    from (select distinct w.agent_id from w) x),
held as materialized (
  select x.agent_id, h.name, h.not_before, h.max_concurrent_tasks as room,
         (select count(*) from runplane.agent_throttles o join runplane.leases l on l.agent_id = o.agent_id
           where o.throttle_id = h.id)::int as used
    from (select distinct w.agent_id from w) g
    join runplane.agent_throttles x on x.agent_id = g.agent_id
    join runplane.throttles h on h.id = x.throttle_id),
served as materialized (select distinct unnest(l.agents) as agent from ${liveWorkers} l)
select w.id, w.state = 'BLOCKED' as blocked, w.created_at as "createdAt", w.available_at as "availableAt",
       a.name as agent, a.paused as "agentPaused", q.name as queue, q.paused as "queuePaused",
       a.max_concurrent_tasks as "agentLimit", u.used as "agentUsed",
       exists (select from served s where s.agent = a.name) as served,
       (select array_agg(distinct d.step order by d.step) from runplane.tasks d
         where w.state = 'BLOCKED' and d.run_id = w.run_id and d.step = any(w.depends_on) and d.finished_at is null) as "missingSteps",
       y.reason as "delayReason", y.since as "delayedSince", y.available_at <= now.at as "delayIsOver",
       r.ready_at as "readyAt", z.since as "behindKeySince", w.serial_key as "serialKey",
       b.name as "backoffThrottle", b.not_before as "backoffUntil",
       f.name as "fullThrottle", f.room as "throttleLimit", f.used as "throttleUsed"
  from w
  cross join now
  join runplane.agents a on a.id = w.agent_id
  join runplane.queues q on q.id = a.queue_id
  join agent_use u on u.agent_id = w.agent_id
  left join runplane.ready_tasks r
    on r.agent_id = w.agent_id and r.priority_key = -w.priority and r.turn = w.turn and r.rank = w.rank
  left join runplane.delayed_tasks y on y.available_at = w.available_at and y.task_id = w.id
  left join runplane.serial_tasks z on z.task_id = w.id and exists (
    select from runplane.serial_tasks e where e.agent_id = z.agent_id and e.serial_key = z.serial_key and e.rank < z.rank)
  left join lateral (
    select h.name, h.not_before from held h where h.agent_id = w.agent_id and h.not_before > now.at
     order by h.not_before desc limit 1) b on true
  left join lateral (
    select h.name, h.room, h.used from held h where h.agent_id = w.agent_id and h.used >= h.room
     order by h.name limit 1) f on true`;

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
  /** A live worker asks for tasks of the agent. */
  served: boolean;
  missingSteps: string[] | null;
  delayReason: 'NOT_BEFORE' | 'RETRY_BACKOFF' | null;
  delayedSince: Date | null;
  delayIsOver: boolean | null;
  readyAt: Date | null;
  behindKeySince: Date | null;
  serialKey: string | null;
  backoffThrottle: string | null;
  backoffUntil: Date | null;
  fullThrottle: string | null;
  throttleLimit: number | null;
  throttleUsed: number | null;
}
