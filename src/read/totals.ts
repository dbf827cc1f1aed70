import type { Database } from '../db/pool.ts';
import { readById } from './query.ts';

/** What an attempt, task or run used and cost. Token counts that nothing told are null. */
export interface Totals {
  id: string;
  /** Provider answers that were booked. */
  entries: number;
  inputTokens: number | null;
  cacheReadTokens: number | null;
  cacheWriteTokens: number | null;
  outputTokens: number | null;
  reasoningTokens: number | null;
  totalTokens: number | null;
  /** Decimal text in USD, without trailing zeros. */
  llmCost: string;
  computeCost: string;
  totalCost: string;
  unpricedAttempts: number;
}

// sum() skips what is null and of nothing is null, so a count that no row has stays absent. Both kinds of cache writes
// are one count here.
const tokenSums = {
  inputTokens: 'u.input_tokens',
  cacheReadTokens: 'u.cache_read_tokens',
  cacheWriteTokens: either('u.cache_write_tokens', 'u.cache_write_1h_tokens'),
  outputTokens: 'u.output_tokens',
  reasoningTokens: 'u.reasoning_tokens',
  totalTokens: either(
    ...['input', 'cache_read', 'cache_write', 'cache_write_1h', 'output', 'reasoning'].map(
      (name) => `u.${name}_tokens`,
    ),
  ),
};

/** The sum of the columns that are not null; null when all are. */
function either(...columns: string[]): string {
  return `case when coalesce(${columns.join(', ')}) is not null then ${columns.map((c) => `coalesce(${c}, 0)`).join(' + ')} end`;
}

const totalsSql = (scopes: string, usageOf: string, computeOf: string): string => `
select k.id, s.*, trim_scale(s.llm)::text as "llmCost", trim_scale(c.compute)::text as "computeCost",
       trim_scale(s.llm + c.compute)::text as "totalCost"
  from ${scopes}
  cross join lateral (
    select count(*) as entries, ${Object.entries(tokenSums)
      .map(
        ([name, sql]) =>
          `(case when sum(${sql}) is not null then least(sum(${sql}), 9007199254740991) end)::bigint as "${name}"`,
      )
      .join(', ')},
           coalesce(sum(u.llm_cost), 0) as llm,
           (count(distinct u.attempt_id) filter (where u.llm_cost is null))::int as "unpricedAttempts"
      from runplane.usage u where ${usageOf}) s
  cross join lateral (select coalesce(sum(x.compute_cost), 0) as compute from ${computeOf}) c`;

const ofAttemptsSql = totalsSql(
  `(select a.id, a.task_id, a.compute_cost from runplane.attempts a where a.id = any($1)
    union all select l.attempt_id, l.task_id, 0 from runplane.leases l where l.attempt_id = any($1)) k`,
  'u.task_id = k.task_id and u.attempt_id = k.id',
  '(select k.compute_cost) x',
);
const ofTasksSql = totalsSql(
  'unnest($1::uuid[]) k(id)',
  'u.task_id = k.id',
  'runplane.attempts x where x.task_id = k.id',
);
const ofRunsSql = totalsSql(
  'unnest($1::uuid[]) k(id)',
  'u.run_id = k.id',
  'runplane.tasks t join runplane.attempts x on x.task_id = t.id where t.run_id = k.id',
);

/** Tokens and money, summed from what was booked. */
export class TotalQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  ofAttempts(ids: readonly string[]): Promise<Map<string, Totals>> {
    return readById(this.#db, 'totals-of-attempts', ofAttemptsSql, ids);
  }

  ofTasks(ids: readonly string[]): Promise<Map<string, Totals>> {
    return readById(this.#db, 'totals-of-tasks', ofTasksSql, ids);
  }

  ofRuns(ids: readonly string[]): Promise<Map<string, Totals>> {
    return readById(this.#db, 'totals-of-runs', ofRunsSql, ids);
  }
}
