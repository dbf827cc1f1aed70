import type { Queryable } from '../db/pool.ts';
import type { ModelUsage } from './parse-usage.ts';

const bookSql = `
with moment as materialized (select runplane.clock() as now)
insert into runplane.usage (attempt_id, task_id, run_id, agent_id, model, provider, response_id, input_tokens, cache_read_tokens,
  cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, requests, llm_cost, raw, at)
select u.attempt_id, t.id, t.run_id, t.agent_id, coalesce(u.model, (select a.default_model from runplane.agents a where a.id = t.agent_id)),
       u.provider, u."responseId", u."inputTokens", u."cacheReadTokens", u."cacheWriteTokens", u."cacheWrite1hTokens",
       u."outputTokens", u."reasoningTokens", u.requests, u.cost, u.raw, coalesce(u.at, m.now)
  from moment m cross join json_to_recordset($1::json) as u(attempt_id uuid, model text, provider text, "responseId" text,
    "inputTokens" bigint, "cacheReadTokens" bigint, "cacheWriteTokens" bigint, "cacheWrite1hTokens" bigint, "outputTokens" bigint,
    "reasoningTokens" bigint, requests int, cost numeric, raw jsonb, at timestamptz)
  join runplane.tasks t on t.id = coalesce(
    (select l.task_id from runplane.leases l where l.attempt_id = u.attempt_id),
    (select x.task_id from runplane.attempts x where x.id = u.attempt_id))
 order by u."responseId"
on conflict (response_id) where response_id is not null do nothing`;

/** Books what attempts used. A provider's answer counts once, over heartbeats, attempts and repeated results. */
export async function bookUsage(
  tx: Queryable,
  attempts: readonly { attemptId: string; usage: readonly ModelUsage[] }[],
): Promise<void> {
  const rows = attempts.flatMap(({ attemptId, usage }) => usage.map((one) => usageRow(attemptId, one)));
  if (rows.length === 0) return;
  await tx.query({ name: 'book-usage', text: bookSql, values: [JSON.stringify(rows)] });
}

/** What is absent is not sent: reading a null costs the database as much as reading a value. */
function usageRow(attemptId: string, usage: ModelUsage): Record<string, unknown> {
  const row: Record<string, unknown> = { attempt_id: attemptId };
  for (const [name, value] of Object.entries(usage)) if (value !== null) row[name] = value;
  return row;
}
