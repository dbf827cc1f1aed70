import type { Database } from '../db/pool.ts';
import type { RetryPolicy } from '../domain/retry-policy.ts';
import { type ListDefinition, readList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { groupRows, readById, readRows } from './query.ts';

export interface AgentRow {
  id: string;
  name: string;
  description: string | null;
  dispatchKind: 'PULL' | 'INLINE';
  batchBySerialKey: boolean;
  handler: string | null;
  queueId: string;
  maxConcurrentTasks: number | null;
  retryPolicy: RetryPolicy;
  leaseSeconds: number;
  timeoutSeconds: number | null;
  defaultModel: string | null;
  /** Decimal text in USD. */
  computeCostPerHour: string | null;
  paused: boolean;
  version: number;
}

const columns = `
a.id, a.name, a.description, a.dispatch_kind as "dispatchKind", a.batch_by_serial_key as "batchBySerialKey", a.handler, a.queue_id as "queueId",
a.max_concurrent_tasks as "maxConcurrentTasks", a.retry_policy as "retryPolicy",
a.lease_seconds as "leaseSeconds", a.timeout_seconds as "timeoutSeconds", a.default_model as "defaultModel",
trim_scale(a.compute_cost_per_hour)::text as "computeCostPerHour", a.paused, a.version`;

const byIdSql = `select ${columns} from runplane.agents a where a.id = any($1)`;
const byNameSql = `select ${columns} from runplane.agents a where a.name = any($1) order by a.name`;
const ofThrottlesSql = `
select ${columns}, x.throttle_id as "throttleId"
  from runplane.agent_throttles x join runplane.agents a on a.id = x.agent_id where x.throttle_id = any($1) order by a.name`;

const list: ListDefinition = {
  name: 'agents',
  columns,
  from: 'runplane.agents a',
  key: [{ sql: 'a.id', type: 'uuid' }],
  descending: false,
};

export class AgentQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, AgentRow>> {
    return readById(this.#db, 'agents-by-id', byIdSql, ids);
  }

  async byNames(names: readonly string[]): Promise<Map<string, AgentRow>> {
    const rows = await readRows<AgentRow>(this.#db, {
      name: 'agents-by-name',
      text: byNameSql,
      values: [names],
    });
    return new Map(rows.map((agent) => [agent.name, agent]));
  }

  /** The agents that share each throttle, by name. */
  async ofThrottles(throttleIds: readonly string[]): Promise<Map<string, AgentRow[]>> {
    const statement = { name: 'agents-of-throttles', text: ofThrottlesSql, values: [throttleIds] };
    const rows = await readRows<AgentRow & { throttleId: string }>(this.#db, statement);
    return groupRows<AgentRow & { throttleId: string }>(throttleIds, rows, (row) => row.throttleId);
  }

  async list(page: PageArgs): Promise<Page<AgentRow>> {
    return readList(this.#db, { list }, page);
  }
}
