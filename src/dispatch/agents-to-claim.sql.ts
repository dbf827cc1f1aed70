import type { Queryable } from '../db/pool.ts';
import { type InvalidInput, InvalidInputError, parsed } from '../domain/problems.ts';

const agentsSql = `
with pool as materialized (select p.id, p.elastic from runplane.pools p where p.name = $2)
select (select id from pool) as "poolId", coalesce(json_agg(json_build_object('id', a.id, 'name', a.name, 'dispatch', a.dispatch_kind, 'served',
         $2::text is null or coalesce(runplane.serves(p.id, p.elastic, q.pool_id, q.shared_weight), false))), '[]') as agents
  from runplane.agents a join runplane.queues q on q.id = a.queue_id left join pool p on true
 where $1::text[] is null or a.name = any($1)`;

export interface AgentToClaim {
  id: string;
  name: string;
  dispatch: string;
  /** The pool that was named runs its queue, or borrows from it. */
  served: boolean;
}

/** The pull agents that a claim asks for, by their names, by a pool, or by both. */
export async function findAgents(
  db: Queryable,
  claim: { agents: readonly string[] | null; pool: string | null },
): Promise<{ poolId: string | null; agents: AgentToClaim[] } | InvalidInput> {
  const { rows } = await db.query<{ poolId: string | null; agents: AgentToClaim[] }>({
    name: 'agents-to-claim',
    text: agentsSql,
    values: [claim.agents, claim.pool],
  });
  const { poolId = null, agents = [] } = rows[0] ?? {};
  return parsed(() => {
    for (const [i, name] of claim.agents?.entries() ?? []) {
      const agent = agents.find((known) => known.name === name);
      if (!agent) throw new InvalidInputError(`agents[${i}]`, `There is no agent ${JSON.stringify(name)}.`);
      if (agent.dispatch !== 'PULL')
        throw new InvalidInputError(`agents[${i}]`, `Agent ${name} is not dispatched to workers.`);
    }
    if (claim.pool !== null && poolId === null)
      throw new InvalidInputError('pool', `There is no pool ${JSON.stringify(claim.pool)}.`);
    return { poolId, agents: agents.filter(({ dispatch, served }) => dispatch === 'PULL' && served) };
  });
}
