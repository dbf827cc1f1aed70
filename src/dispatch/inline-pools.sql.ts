import type { Queryable } from '../db/pool.ts';

/** A pool as this process serves it: the inline agents whose handlers are here, and the slots for them. */
export interface ServedPool {
  poolId: string;
  pool: string;
  slots: number;
  agentIds: string[];
}

const servedSql = `
select p.id as "poolId", p.name as pool, p.slots_per_replica as slots, array_agg(a.id order by a.id) as "agentIds"
  from runplane.agents a join runplane.queues q on q.id = a.queue_id
  join runplane.pools p on runplane.serves(p.id, p.elastic, q.pool_id, q.shared_weight)
 where a.dispatch_kind = 'INLINE' and a.handler = any($1)
 group by p.id order by p.name`;

/** Only agents whose handler this process has: in a rolling upgrade the replicas differ. */
export async function readServedPools(db: Queryable, handlers: readonly string[]): Promise<ServedPool[]> {
  const { rows } = await db.query<ServedPool & Record<string, unknown>>({
    name: 'served-pools',
    text: servedSql,
    values: [handlers],
  });
  return rows;
}
