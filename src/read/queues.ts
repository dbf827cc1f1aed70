import type { Database } from '../db/pool.ts';
import { groupRows, readById, readRows } from './query.ts';
import { busySlots, liveWorkers, slotsInPool } from './workers.ts';

export interface QueueRow {
  id: string;
  name: string;
  poolId: string;
  weight: number;
  sharedWeight: number;
  paused: boolean;
  version: number;
}

export interface PoolRow {
  id: string;
  name: string;
  slotsPerReplica: number;
  elastic: boolean;
  version: number;
}

/** Live processes that serve a pool, their slots in it, and how many of these are taken. */
export interface PoolUse {
  id: string;
  replicas: number;
  slots: number;
  busySlots: number;
}

export interface QueueStats {
  id: string;
  pending: number;
  scheduled: number;
  retrying: number;
  blocked: number;
  active: number;
  deadLettered: number;
  completedLastHour: number;
  failedLastHour: number;
  oldestReadyAgeMs: number | null;
}

const queueColumns = `
q.id, q.name, q.pool_id as "poolId", q.weight, q.shared_weight as "sharedWeight", q.paused, q.version`;
const poolColumns = 'p.id, p.name, p.slots_per_replica as "slotsPerReplica", p.elastic, p.version';

const queuesByIdSql = `select ${queueColumns} from runplane.queues q where q.id = any($1)`;
const allQueuesSql = `select ${queueColumns} from runplane.queues q order by q.name`;
const queuesOfPoolsSql = `select ${queueColumns} from runplane.queues q where q.pool_id = any($1) order by q.name`;
const poolsByIdSql = `select ${poolColumns} from runplane.pools p where p.id = any($1)`;
const allPoolsSql = `select ${poolColumns} from runplane.pools p order by p.name`;
const poolsByNameSql = `select ${poolColumns} from runplane.pools p where p.name = any($1)`;

const poolUseSql = `
with now as materialized (select runplane.clock() as at), ${liveWorkers},
busy as materialized (${busySlots('l.pool_id = any($1)')})
select p.id, u.replicas, u.slots, u."busySlots" from runplane.pools p cross join lateral (
  select count(*)::int as replicas, coalesce(sum(${slotsInPool('w.slots')}), 0)::int as slots, coalesce(sum(b.n), 0)::int as "busySlots"
    from (select distinct k.worker_id, k.slots from asks k where k.pool_id = p.id) w
    left join (select b.worker_id, sum(b.n) as n from busy b where b.pool_id = p.id group by b.worker_id) b on b.worker_id = w.worker_id) u
 where p.id = any($1)`;

// Everything that is open has a small table to itself; blocked and finished tasks have none and are looked for in all.
const statsSql = `
with now as materialized (select runplane.clock() as at),
a as materialized (select a.id, a.queue_id from runplane.agents a where a.queue_id = any($1)),
counted as (
  select a.queue_id, 'pending' as what, count(*) as n, min(r.ready_at) as oldest from a join runplane.ready_tasks r on r.agent_id = a.id group by 1
  union all
  select a.queue_id, 'pending', count(*), null from a join runplane.serial_tasks s on s.agent_id = a.id
   where exists (select from runplane.serial_tasks b where b.agent_id = s.agent_id and b.serial_key = s.serial_key and b.rank < s.rank) group by 1
  union all
  select a.queue_id, case d.reason when 'NOT_BEFORE' then 'scheduled' else 'retrying' end, count(*), null
    from a join runplane.delayed_tasks d on d.agent_id = a.id group by 1, 2
  union all
  select a.queue_id, 'active', count(*), null from a join runplane.leases l on l.agent_id = a.id group by 1
  union all
  select a.queue_id, 'deadLettered', count(*), null from a join runplane.dead_letters d on d.agent_id = a.id where d.replayed_at is null group by 1
  union all
  select a.queue_id, t.state::text, count(*), null from a join runplane.tasks t on t.agent_id = a.id cross join now
   where t.state = 'BLOCKED' or (t.state in ('COMPLETED', 'FAILED') and t.deleted_at is null and t.finished_at > now.at - interval '1 hour') group by 1, 2)
select k.id, ${count('pending')}, ${count('scheduled')}, ${count('retrying')}, ${count('BLOCKED', 'blocked')}, ${count('active')},
       ${count('deadLettered')}, ${count('COMPLETED', 'completedLastHour')}, ${count('FAILED', 'failedLastHour')},
       greatest(0, (extract(epoch from (select at from now) - min(c.oldest)) * 1000)::bigint) as "oldestReadyAgeMs"
  from unnest($1::uuid[]) k(id) left join counted c on c.queue_id = k.id group by k.id`;

function count(what: string, name = what): string {
  return `coalesce(sum(c.n) filter (where c.what = '${what}'), 0)::int as "${name}"`;
}

export class QueueQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, QueueRow>> {
    return readById(this.#db, 'queues-by-id', queuesByIdSql, ids);
  }

  /** By name. */
  all(): Promise<QueueRow[]> {
    return readRows(this.#db, { name: 'all-queues', text: allQueuesSql });
  }

  async ofPools(poolIds: readonly string[]): Promise<Map<string, QueueRow[]>> {
    const rows = await readRows<QueueRow>(this.#db, {
      name: 'queues-of-pools',
      text: queuesOfPoolsSql,
      values: [poolIds],
    });
    return groupRows<QueueRow>(poolIds, rows, (row) => row.poolId);
  }

  stats(ids: readonly string[]): Promise<Map<string, QueueStats>> {
    return readById(this.#db, 'queue-stats', statsSql, ids);
  }
}

export class PoolQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, PoolRow>> {
    return readById(this.#db, 'pools-by-id', poolsByIdSql, ids);
  }

  async byNames(names: readonly string[]): Promise<Map<string, PoolRow>> {
    const rows = await readRows<PoolRow>(this.#db, {
      name: 'pools-by-name',
      text: poolsByNameSql,
      values: [names],
    });
    return new Map(rows.map((pool) => [pool.name, pool]));
  }

  /** By name. */
  all(): Promise<PoolRow[]> {
    return readRows(this.#db, { name: 'all-pools', text: allPoolsSql });
  }

  use(ids: readonly string[]): Promise<Map<string, PoolUse>> {
    return readById(this.#db, 'use-of-pools', poolUseSql, ids);
  }
}
