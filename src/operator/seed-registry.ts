import type { Queryable } from '../db/pool.ts';
import { newUuid } from '../domain/ids.ts';
import { shippedPools } from '../domain/registry.ts';

/**
 * Creates the shipped pools and queues that are not there, once the database is migrated. What is there was perhaps
 * saved by someone and stays as it is. It is the installation's start, not an operator's change, so it is not audited.
 */
export async function seedRegistry(tx: Queryable): Promise<void> {
  await tx.query({
    text: `insert into runplane.pools (id, name, slots_per_replica, elastic)
           select p.id, p.name, p.slots, p.elastic
             from json_to_recordset($1) as p(id uuid, name text, slots smallint, elastic boolean)
            order by p.name
           on conflict (name) do nothing`,
    values: [
      JSON.stringify(
        shippedPools.map(({ name, slotsPerReplica, elastic }) => ({
          id: newUuid(),
          name,
          slots: slotsPerReplica,
          elastic,
        })),
      ),
    ],
  });
  const queues = shippedPools.flatMap((pool) =>
    pool.queues.map(({ name, weight, sharedWeight }) => ({
      id: newUuid(),
      name,
      pool: pool.name,
      weight,
      shared_weight: sharedWeight,
    })),
  );
  await tx.query({
    text: `insert into runplane.queues (id, name, pool_id, weight, shared_weight)
           select q.id, q.name, p.id, q.weight, q.shared_weight
             from json_to_recordset($1) as q(id uuid, name text, pool text, weight smallint, shared_weight smallint)
             join runplane.pools p on p.name = q.pool
            order by q.name
           on conflict (name) do nothing`,
    values: [JSON.stringify(queues)],
  });
}
