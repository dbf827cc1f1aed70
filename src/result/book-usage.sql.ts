import type { Queryable } from '../db/pool.ts';
import type { ModelUsage } from './parse-usage.ts';

const bookSql = `
insert into runplane.usage (attempt_id, task_id, run_id, agent_id, model, provider, response_id, input_tokens, cache_read_tokens,
  cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, requests, llm_cost, raw, at)
select o.attempt_id, t.id, t.run_id, t.agent_id, coalesce(u.model, a.default_model), u.provider, u."responseId", u."inputTokens",
       u."cacheReadTokens", u."cacheWriteTokens", u."cacheWrite1hTokens", u."outputTokens", u."reasoningTokens", u.requests, u.cost,
       u.raw, coalesce(u.at, runplane.clock())
  from json_to_recordset($1::json) as o(attempt_id uuid, usage json)
  cross join lateral json_to_recordset(o.usage) as u(model text, provider text, "responseId" text, "inputTokens" bigint,
    "cacheReadTokens" bigint, "cacheWriteTokens" bigint, "cacheWrite1hTokens" bigint, "outputTokens" bigint,
    "reasoningTokens" bigint, requests int, cost numeric, raw jsonb, at timestamptz)
  join runplane.tasks t on t.id = coalesce(
    (select l.task_id from runplane.leases l where l.attempt_id = o.attempt_id),
    (select x.task_id from runplane.attempts x where x.id = o.attempt_id))
  join runplane.agents a on a.id = t.agent_id
 order by u."responseId"
on conflict (response_id) where response_id is not null do nothing`;

/** Books what attempts used. A provider's answer counts once, over heartbeats, attempts and repeated results. */
export async function bookUsage(
  tx: Queryable,
  attempts: readonly { attemptId: string; usage: readonly ModelUsage[] }[],
): Promise<void> {
  const given = attempts.filter(({ usage }) => usage.length > 0);
  if (given.length === 0) return;
  const rows = given.map(({ attemptId, usage }) => ({ attempt_id: attemptId, usage }));
  await tx.query({ name: 'book-usage', text: bookSql, values: [JSON.stringify(rows)] });
}
