import type { WaitingReason } from './waiting.sql.ts';
import {
  agentFacts,
  holdingThrottle,
  isBehindItsKey,
  reasonJoins,
  reasonOfTask,
} from './waiting-facts.sql.ts';

/** What a task itself waits for; all other reasons are those of its agent. */
const ownReasons: readonly WaitingReason[] = ['DEPENDENCY', 'NOT_BEFORE', 'RETRY_BACKOFF', 'SERIAL_KEY'];

/** Those that can be different for tasks of one agent. */
const throttleReasons: readonly WaitingReason[] = ['CONCURRENCY_LIMIT', 'REQUEST_RATE', 'TOKEN_BUDGET'];

const throttleOf = (id: string, priority: string, estimatedTokens: string): string =>
  holdingThrottle({ agentId: 'c.agent_id', id, priority, estimatedTokens });

// Where no throttle needs to know the task, all tasks of an agent that could run wait for the same reason.
const agentReasons = `
agent_reasons as materialized (
  select c.agent_id, c.otherwise, case when c.stopped is not null then c.stopped when not c.by_task then coalesce(k.reason, c.otherwise) end as reason
    from holds c left join lateral ${throttleOf('null::uuid', '0', 'null::bigint')} k on c.stopped is null and not c.by_task)`;

const isBehind = `exists (select from runplane.serial_tasks z where z.task_id = d.task_id and ${isBehindItsKey('z')})`;

// Those whose time has come are no longer delayed, though the mover has yet to move them. For each agent by itself, so
// that the others' are not read.
const couldRun = `lateral (
  select r.task_id from runplane.ready_tasks r where r.agent_id = c.agent_id
  union all
  select d.task_id from runplane.delayed_tasks d
   where d.agent_id = c.agent_id and d.available_at <= (select n.at from now n) and not ${isBehind})`;

/**
 * The tasks that wait for one of these reasons, each with its reason. Read from the places where tasks wait, so its cost
 * is that of what waits, however much is past; tasks themselves are read only where a token budget needs to know them.
 */
export function waitingTasksSql(reasons: readonly WaitingReason[]): string {
  const wanted = `(${reasons.map((reason) => `'${reason}'`).join(', ')})`;
  const parts: string[] = [];
  if (reasons.some((reason) => !ownReasons.includes(reason))) {
    const can = reasons.some((reason) => throttleReasons.includes(reason))
      ? 'true'
      : `c.otherwise in ${wanted}`;
    parts.push(
      `select p.task_id, c.reason from agent_reasons c cross join ${couldRun} p where c.reason in ${wanted}`,
      `select t.id, coalesce(k.reason, c.otherwise) from agent_reasons c cross join ${couldRun} p
         join runplane.tasks t on t.id = p.task_id
         left join lateral ${throttleOf('t.id', 't.priority', 't.estimated_tokens')} k on true
        where c.reason is null and ${can} and coalesce(k.reason, c.otherwise) in ${wanted}`,
    );
  }
  if (reasons.includes('NOT_BEFORE') || reasons.includes('RETRY_BACKOFF')) {
    parts.push(`select d.task_id, d.reason::text from runplane.delayed_tasks d
                 where d.available_at > (select n.at from now n) and d.reason::text in ${wanted}`);
  }
  if (reasons.includes('SERIAL_KEY')) {
    parts.push(`select z.task_id, 'SERIAL_KEY' from runplane.serial_tasks z where ${isBehindItsKey('z')}
                   and not exists (select from runplane.leases l where l.task_id = z.task_id)
                   and not exists (select from runplane.delayed_tasks d 
                                     where d.task_id = z.task_id and d.available_at > (select n.at from now n))`);
  }
  if (reasons.includes('DEPENDENCY')) {
    // In the run of a blocked task another one is open, and has a place.
    parts.push(`select t.id, 'DEPENDENCY' from (
                  select p.run_id from runplane.ready_tasks p union select p.run_id from runplane.delayed_tasks p
                  union select p.run_id from runplane.serial_tasks p union select p.run_id from runplane.leases p) o
                  join runplane.runs u on u.id = o.run_id and u.blocked_tasks > 0
                  join runplane.tasks t on t.run_id = u.id and t.state = 'BLOCKED'`);
  }
  return `(with ${agentFacts('true')}, ${agentReasons} ${parts.join(' union all ')})`;
}

/** The reason of a task t with its lease l, if it waits: for lists that are walked in their order, beside agentFacts. */
export const reasonOfListed = `
case when t.state in ('OPEN', 'BLOCKED') and l.task_id is null then (
  select ${reasonOfTask}
    from (select t.id, t.state, t.agent_id, t.priority, t.estimated_tokens, t.available_at) w ${reasonJoins}) end`;
