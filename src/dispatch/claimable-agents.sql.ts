import type { Queryable } from '../db/pool.ts';

// What a claim would find, but for what it asks of single tasks and of slots: nothing is locked, so it is only a hint.
const claimableSql = `
with now as materialized (select runplane.clock() as at),
a as materialized (
  select a.id, a.name from runplane.agents a join runplane.queues q on q.id = a.queue_id
   where a.id = any($1) and not a.paused and not q.paused
     and exists (select from runplane.ready_head(a.id))
     and (a.max_concurrent_tasks is null
          or a.max_concurrent_tasks > (select count(*) from runplane.live_leases(a.id)))),
full_throttles as materialized (
  select s.throttle_id from now n cross join runplane.throttle_state(array(
      select distinct x.throttle_id from runplane.agent_throttles x where x.agent_id in (select a.id from a)), n.at) s
   where not s.open or least(s.task_room, s.request_room, s.token_room) <= 0)
select a.name from a
 where not exists (
   select from runplane.agent_throttles x join full_throttles f on f.throttle_id = x.throttle_id where x.agent_id = a.id)
 order by a.name`;

/** Names of those agents that have tasks and room for one. */
export async function findClaimableAgents(db: Queryable, agentIds: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>({
    name: 'claimable-agents',
    text: claimableSql,
    values: [agentIds],
  });
  return rows.map(({ name }) => name);
}
