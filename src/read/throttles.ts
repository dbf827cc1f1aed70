import type { Database } from '../db/pool.ts';
import { type ListDefinition, readList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { groupRows, readById, readRows } from './query.ts';

export interface ThrottleRow {
  id: string;
  name: string;
  maxConcurrentTasks: number | null;
  maxTokensPerMinute: number | null;
  maxRequestsPerMinute: number | null;
  maxRequestsPerSecond: number | null;
  notBefore: Date | null;
  version: number;
}

const columns = `
h.id, h.name, h.max_concurrent_tasks as "maxConcurrentTasks", h.max_tokens_per_minute as "maxTokensPerMinute",
h.max_requests_per_minute as "maxRequestsPerMinute", h.max_requests_per_second as "maxRequestsPerSecond", h.not_before as "notBefore", h.version`;
const from = 'runplane.throttles h';

const byIdSql = `select ${columns} from ${from} where h.id = any($1)`;
const ofAgentsSql = `
select ${columns}, x.agent_id as "agentId"
  from runplane.agent_throttles x join ${from} on h.id = x.throttle_id where x.agent_id = any($1) order by h.name`;
const useSql = `
select u.throttle_id as id, u.tasks::int, u.tokens::float8, u.requests::int
  from (select runplane.clock() as now offset 0) m cross join lateral runplane.throttle_state($1, m.now) u`;

/** What of a throttle is in use now, as claims count it. */
export interface ThrottleUse {
  id: string;
  tasks: number;
  tokens: number;
  requests: number;
}

const list: ListDefinition = {
  name: 'throttles',
  columns,
  from,
  key: [{ sql: 'h.id', type: 'uuid' }],
  descending: false,
};

export class ThrottleQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, ThrottleRow>> {
    return readById(this.#db, 'throttles-by-id', byIdSql, ids);
  }

  /** By name. */
  async ofAgents(agentIds: readonly string[]): Promise<Map<string, ThrottleRow[]>> {
    const statement = { name: 'throttles-of-agents', text: ofAgentsSql, values: [agentIds] };
    const rows = await readRows<ThrottleRow & { agentId: string }>(this.#db, statement);
    return groupRows<ThrottleRow & { agentId: string }>(agentIds, rows, (row) => row.agentId);
  }

  use(ids: readonly string[]): Promise<Map<string, ThrottleUse>> {
    return readById(this.#db, 'use-of-throttles', useSql, ids);
  }

  async list(page: PageArgs): Promise<Page<ThrottleRow>> {
    return readList(this.#db, { list }, page);
  }
}
