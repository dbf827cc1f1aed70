import type { Queryable } from '../db/pool.ts';
import type { ModelUsage } from './parse-usage.ts';

/** More than any budget has: what is counted of anything ends here, so that no sum of it is too large for a column. */
const most = 1_000_000_000_000;

/** Tokens that budgets count: what was read from a cache is not among them. */
const countedTokens = (row: string): string =>
  `least(${most}, ${[
    'input_tokens',
    'cache_write_tokens',
    'cache_write_1h_tokens',
    'output_tokens',
    'reasoning_tokens',
  ]
    .map((column) => `coalesce(${row}.${column}, 0)`)
    .join(' + ')})`;

// Settles what throttles with a budget count, too. A claim counted one request: the attempt's own count corrects it, at
// the time of the claim where it made less. What an attempt used is known when it ends; then it serves to learn from.
const bookSql = `
with now as materialized (select runplane.clock() as at),
given as materialized (
  select u.*, t.id as task_id, t.run_id, t.agent_id, t.deleted_at is not null as deleted
    from json_to_recordset($1::json) as u(attempt_id uuid, model text, provider text, "responseId" text,
      "inputTokens" bigint, "cacheReadTokens" bigint, "cacheWriteTokens" bigint, "cacheWrite1hTokens" bigint, "outputTokens" bigint,
      "reasoningTokens" bigint, requests int, cost numeric, raw jsonb, at timestamptz)
    join runplane.tasks t on t.id = coalesce(
      (select l.task_id from runplane.leases l where l.attempt_id = u.attempt_id),
      (select x.task_id from runplane.attempts x where x.id = u.attempt_id))),
booked as (
  insert into runplane.usage (attempt_id, task_id, run_id, agent_id, model, provider, response_id, input_tokens, cache_read_tokens,
    cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, requests, llm_cost, raw, at)
  select u.attempt_id, u.task_id, u.run_id, u.agent_id, coalesce(u.model, (select a.default_model from runplane.agents a where a.id = u.agent_id)),
         u.provider, u."responseId", u."inputTokens", u."cacheReadTokens", u."cacheWriteTokens", u."cacheWrite1hTokens",
         u."outputTokens", u."reasoningTokens", u.requests, u.cost, case when not u.deleted then u.raw end, coalesce(u.at, n.at)
    from given u cross join now n
   order by u."responseId"
  on conflict (response_id) where response_id is not null do nothing
  returning attempt_id, task_id, agent_id, requests, at, ${countedTokens('usage')} as tokens),
budgets as materialized (
  select x.agent_id, x.throttle_id, h.max_tokens_per_minute is not null as counts_tokens,
         coalesce(h.max_requests_per_minute, h.max_requests_per_second) is not null as counts_requests
    from (select distinct b.agent_id from booked b) b
    join runplane.agent_throttles x on x.agent_id = b.agent_id
    join runplane.throttles h on h.id = x.throttle_id
   where coalesce(h.max_tokens_per_minute, h.max_requests_per_minute, h.max_requests_per_second) is not null),
corrected as materialized (
  -- What this statement books is not seen here: the claim's one request is taken off with an attempt's first usage.
  -- OFFSET 0: looked up for each, where a plan could hash the usage of all.
  select b.attempt_id, b.agent_id, (sum(b.requests) - case when exists (
           select from runplane.usage o where o.task_id = b.task_id and o.attempt_id = b.attempt_id offset 0) then 0 else 1 end)::int as requests
    from booked b where exists (select from budgets g where g.counts_requests)
   group by b.attempt_id, b.task_id, b.agent_id),
used as (
  insert into runplane.throttle_use (throttle_id, at, tokens, requests)
  select u.throttle_id, u.at, least(${most}, sum(u.tokens)), least(2147483647, sum(u.requests)) from (
    select g.throttle_id, least(b.at, n.at) as at, b.tokens, 0 as requests
      from booked b join budgets g on g.agent_id = b.agent_id and g.counts_tokens cross join now n
    union all
    select g.throttle_id, case when c.requests > 0 then n.at else coalesce(
             (select l.started_at from runplane.leases l where l.attempt_id = c.attempt_id),
             (select x.started_at from runplane.attempts x where x.id = c.attempt_id)) end, 0, c.requests
      from corrected c join budgets g on g.agent_id = c.agent_id and g.counts_requests cross join now n where c.requests <> 0) u
    cross join now n
   where u.at > n.at - interval '60 s' group by u.throttle_id, u.at),
spent as materialized (
  select b.attempt_id, least(${most}, sum(b.tokens))::bigint as tokens from booked b
   where b.agent_id in (select g.agent_id from budgets g where g.counts_tokens) group by b.attempt_id),
-- By keys and not by a join, which could compare each lease with each attempt.
settled as (
  update runplane.leases l
     set settled_tokens = l.settled_tokens + ((select jsonb_object_agg(s.attempt_id, s.tokens) from spent s) ->> l.attempt_id::text)::bigint
   where l.attempt_id = any(array(select s.attempt_id from spent s)))
insert into runplane.settled_attempts (agent_id, tokens, expected_tokens, seconds)
select b.agent_id, least(${most}, sum(b.tokens) + coalesce((select sum(${countedTokens('o')}) from runplane.usage o where o.task_id = x.task_id and o.attempt_id = x.id), 0)),
       (select t.estimated_tokens from runplane.tasks t where t.id = x.task_id), extract(epoch from x.finished_at - x.started_at)
  from booked b join runplane.attempts x on x.id = b.attempt_id
 where b.agent_id in (select g.agent_id from budgets g where g.counts_tokens)
 group by b.agent_id, x.id`;

/**
 * Books what attempts used. A provider's answer counts once, over heartbeats, attempts and repeated results. Of a task
 * that was deleted no payload comes back.
 */
export async function bookUsage(
  tx: Queryable,
  attempts: readonly { attemptId: string; usage: readonly ModelUsage[] }[],
): Promise<void> {
  const rows = attempts.flatMap(({ attemptId, usage }) => usage.map((one) => usageRow(attemptId, one)));
  if (rows.length === 0) return;
  await tx.send({ name: 'book-usage', text: bookSql, values: [JSON.stringify(rows)] });
}

/** What is absent is not sent: reading a null costs the database as much as reading a value. */
function usageRow(attemptId: string, usage: ModelUsage): Record<string, unknown> {
  const row: Record<string, unknown> = { attempt_id: attemptId };
  for (const [name, value] of Object.entries(usage)) if (value !== null) row[name] = value;
  return row;
}
