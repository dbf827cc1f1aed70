import type { Database } from '../db/pool.ts';
import { type ListDefinition, readList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { groupRows, readById, readRows } from './query.ts';

export interface ThrottleRow {
  id: string;
  name: string;
  maxConcurrentTasks: number | null;
  notBefore: Date | null;
  version: number;
}

const columns = `
h.id, h.name, h.max_concurrent_tasks as "maxConcurrentTasks", h.not_before as "notBefore", h.version`;
const from = 'runplane.throttles h';

const byIdSql = `select ${columns} from ${from} where h.id = any($1)`;
const ofAgentsSql = `
select ${columns}, x.agent_id as "agentId"
  from runplane.agent_throttles x join ${from} on h.id = x.throttle_id where x.agent_id = any($1) order by h.name`;
const processingSql = `
select k.id, count(l.attempt_id)::int as processing
  from unnest($1::uuid[]) k(id)
  left join runplane.agent_throttles x on x.throttle_id = k.id
  left join runplane.leases l on l.agent_id = x.agent_id
 group by k.id`;

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

  /** Live leases of the agents that share each throttle: what its limit counts. */
  processing(ids: readonly string[]): Promise<Map<string, { id: string; processing: number }>> {
    return readById(this.#db, 'processing-of-throttles', processingSql, ids);
  }

  async list(page: PageArgs): Promise<Page<ThrottleRow>> {
    return readList(this.#db, { list }, page);
  }
}
