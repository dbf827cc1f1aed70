import type { Queryable } from '../db/pool.ts';

// Throttles come before runs in the lock order, so this runs before the runs of the results are locked. Only current
// attempts count: a late or repeated result says nothing about the provider now.
const holdBackSql = `
with now as materialized (select runplane.clock() as at),
told as (
  select x.throttle_id as id, max(now.at + make_interval(secs => o.seconds)) as until
    from now cross join json_to_recordset($1::json) as o(attempt_id uuid, seconds float8, throttle text)
    join runplane.leases l on l.attempt_id = o.attempt_id
    join runplane.agent_throttles x on x.agent_id = l.agent_id
    join runplane.throttles t on t.id = x.throttle_id
   where o.throttle is null or o.throttle = t.name or not exists (
           select from runplane.agent_throttles y join runplane.throttles n on n.id = y.throttle_id
            where y.agent_id = l.agent_id and n.name = o.throttle)
   group by x.throttle_id),
locked as (
  select t.id from runplane.throttles t where t.id in (select id from told) order by t.id for no key update)
update runplane.throttles t set not_before = greatest(t.not_before, told.until)
  from told join locked on locked.id = told.id where t.id = told.id`;

/**
 * A provider that asks for a pause gets it: nothing is claimed through these throttles before it is over. A name that the
 * agent has no throttle of (misspelt, or taken away meanwhile) says no more than none: all of the agent's are held back.
 */
export async function holdBackThrottles(
  tx: Queryable,
  told: readonly { attemptId: string; seconds: number; throttle: string | null }[],
): Promise<void> {
  if (told.length === 0) return;
  const rows = told.map(({ attemptId, ...rest }) => ({ attempt_id: attemptId, ...rest }));
  await tx.query({ name: 'hold-back-throttles', text: holdBackSql, values: [JSON.stringify(rows)] });
}
