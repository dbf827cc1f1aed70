import type { Database } from '../../db/pool.ts';
import { transactionByKey } from '../../db/transaction.ts';

// A lease that is not counted, or a ready task that no claim comes by: both are before where claims begin to look.
const hides = `
exists (select from runplane.leases l where l.agent_id = s.agent_id and l.claim_seq < s.lease_from and l.started_at < n.quiet_since)
or exists (
  select from runplane.ready_tasks r
   where r.agent_id = s.agent_id and r.priority_key = s.priority_key and (r.turn, r.rank) < (s.turn, s.rank) and r.ready_at < n.quiet_since)`;
const now = 'with now as materialized (select runplane.clock() - make_interval(secs => $1) as quiet_since)';

const lockSql = `
${now}
select a.id from runplane.agents a
 where a.id in (select s.agent_id from runplane.scan_starts s cross join now n where ${hides})
 order by a.id for no key update of a`;
const removeSql = `
${now}
delete from runplane.scan_starts s using now n where s.agent_id = any($2) and (${hides})`;

/** Lets claims look at everything again of agents of which something is hidden from them; answers of how many. */
export function repairScanStarts(db: Database, thresholdSeconds: number): Promise<number> {
  return transactionByKey(db, async (tx) => {
    const { rows } = await tx.query<{ id: string }>({
      name: 'lock-hiding-agents',
      text: lockSql,
      values: [thresholdSeconds],
    });
    if (rows.length === 0) return 0;
    const { rowCount } = await tx.query({
      name: 'remove-scan-starts',
      text: removeSql,
      values: [thresholdSeconds, rows.map(({ id }) => id)],
    });
    return rowCount ?? 0;
  });
}
