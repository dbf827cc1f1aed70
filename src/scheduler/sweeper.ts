import { Duty } from '../db/duty.ts';
import type { Database } from '../db/pool.ts';
import type { ResultRecorder } from '../result/results.ts';

export interface SweeperOptions {
  db: Database;
  results: ResultRecorder;
  onError: (error: unknown, duty: string) => void;
}

const everyMs = 1000;
const batch = 500;

// A scan of all leases each second instead of an index that every heartbeat would have to keep. Agent by agent, from
// where claims begin to count, because of the many dead rows before that.
const expiredSql = `
with now as materialized (select runplane.clock() as at)
select l.attempt_id as "attemptId" from now n cross join runplane.scan_starts s cross join lateral (
  select x.attempt_id from runplane.leases x where x.agent_id = s.agent_id and x.claim_seq >= s.lease_from
     and (x.expires_at < n.at or x.timeout_at <= n.at or x.cancel_deadline < n.at) offset 0) l
 order by l.attempt_id limit $1`;

/**
 * Ends attempts whose lease was not extended or that ran too long. Each replica sweeps; whether an attempt is still
 * expired is decided under its run's lock, so each is ended once.
 */
export const createSweeper = ({ db, results, onError }: SweeperOptions): Duty =>
  new Duty({
    name: 'sweeper',
    onError,
    runOnce: async () => {
      const { rows } = await db.query<{ attemptId: string }>({
        name: 'expired-leases',
        text: expiredSql,
        values: [batch],
      });
      await Promise.all(rows.map(({ attemptId }) => results.record({ attemptId, report: null })));
      return rows.length === batch ? 0 : everyMs;
    },
  });
