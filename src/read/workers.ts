import type { Database } from '../db/pool.ts';
import { askStands, asksFor } from '../db/worker-asks.ts';
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

/**
 * Not gone: it was heard of within the last minute, or a lease of it holds, by which it promised to be heard of. now: the
 * time, in SQL. A server is heard of all the time.
 */
const isLive = (now: string): string => `(
  w.left_at is null and (w.last_seen_at > ${now} - interval '60 s' or exists (
    select from runplane.leases x where x.worker_id = w.id and x.claim_key is not null and x.expires_at > ${now})))`;

/** Live workers, and what each asks for, beside a CTE now. */
export const liveWorkers = `
live as materialized (select w.* from now n cross join runplane.workers w where ${isLive('n.at')}),
asks as materialized (
  select k.*, l.slots from live l join runplane.worker_asks k on k.worker_id = l.id where ${askStands('k', 'l.last_seen_at')})`;

/** Of the pool p, how many tasks a worker runs in it at most. */
export const slotsInPool = (workerSlots: string): string => `least(p.slots_per_replica, ${workerSlots})`;

/**
 * Tasks that workers run, by pool. A server replica may have claimed more than it has slots: what waits in it for a slot
 * takes none.
 */
export const busySlots = (leases: string): string => `
select l.worker_id, l.pool_id, case when l.claim_key is null then least(count(*), p.slots_per_replica) else count(*) end as n
  from runplane.leases l left join runplane.pools p on p.id = l.pool_id where ${leases}
 group by l.worker_id, l.pool_id, l.claim_key is null, p.slots_per_replica`;

const columns = `
w.id, w.name, w.client, w.slots, w.started_at as "startedAt", w.last_seen_at as "lastSeenAt",
array(select distinct a.name from runplane.worker_asks k left join runplane.pools p on p.id = k.pool_id
        join runplane.agents a on true join runplane.queues q on q.id = a.queue_id
       where k.worker_id = w.id and ${askStands('k', 'w.last_seen_at')} and ${asksFor('k', 'p', 'a', 'q')} order by a.name) as agents,
array(select distinct p.name from runplane.worker_asks k join runplane.pools p on p.id = k.pool_id
       where k.worker_id = w.id and ${askStands('k', 'w.last_seen_at')} order by p.name) as pools`;
const from = 'runplane.workers w';

const byIdSql = `select ${columns} from ${from} where w.id = any($1)`;
const busySql = `
select b.worker_id as id, sum(b.n)::int as busy from (${busySlots('l.worker_id = any($1)')}) b group by b.worker_id`;

const list: ListDefinition = {
  name: 'workers',
  with: 'now as materialized (select runplane.clock() as at)',
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

  /** How many tasks each runs now; absent is none. */
  busy(ids: readonly string[]): Promise<Map<string, { id: string; busy: number }>> {
    return readById(this.#db, 'busy-workers', busySql, ids);
  }

  /** Newest first: all, or only live ones, or only others. */
  async list(live: boolean | null, page: PageArgs): Promise<Page<WorkerRow>> {
    const conditions = (where: Where): void => where.equals(isLive('(select n.at from now n)'), live);
    return readList(this.#db, { list, filter: { live }, conditions }, page);
  }
}
