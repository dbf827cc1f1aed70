import type { Database } from '../db/pool.ts';
import { type ListDefinition, readList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { readById } from './query.ts';
import type { Where } from './where.ts';

export interface WorkerRow {
  id: string;
  name: string;
  client: string | null;
  /** Names. */
  agents: string[];
  pools: string[];
  slots: number | null;
  startedAt: Date;
  lastSeenAt: Date;
}

const isLive = "w.left_at is null and w.last_seen_at > runplane.clock() - interval '60 seconds'";

/** Processes that were heard of within the last minute and did not leave. */
export const liveWorkers = `(select w.* from runplane.workers w where ${isLive})`;

const columns = `
w.id, w.name, w.client, w.agents, w.pools, w.slots, w.started_at as "startedAt", w.last_seen_at as "lastSeenAt"`;
const from = 'runplane.workers w';

const byIdSql = `select ${columns} from ${from} where w.id = any($1)`;
const busySql = `
select k.id, count(l.attempt_id)::int as busy
  from unnest($1::uuid[]) k(id) left join runplane.leases l on l.worker_id = k.id group by k.id`;

const list: ListDefinition = {
  name: 'workers',
  columns,
  from,
  key: [{ sql: 'w.id', type: 'uuid' }],
  descending: true,
};

export class WorkerQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, WorkerRow>> {
    return readById(this.#db, 'workers-by-id', byIdSql, ids);
  }

  /** How many tasks each executes now. */
  busy(ids: readonly string[]): Promise<Map<string, { id: string; busy: number }>> {
    return readById(this.#db, 'busy-workers', busySql, ids);
  }

  /** Newest first: all, or only live ones, or only others. */
  async list(live: boolean | null, page: PageArgs): Promise<Page<WorkerRow>> {
    const conditions = (where: Where): void => where.equals(`(${isLive})`, live);
    return readList(this.#db, { list, filter: { live }, conditions }, page);
  }
}
