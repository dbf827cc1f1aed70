import { Duty } from '../db/duty.ts';
import type { Database } from '../db/pool.ts';
import type { ResultRecorder } from '../result/results.ts';

export interface SweeperOptions {
  db: Database;
  results: ResultRecorder;
  onError: (error: unknown, duty: string) => void;
}

const everyMs = 1000;
/** A look that comes so long after the one before: the database was away meanwhile, or this process. */
const awayMs = 5000;
const batch = 500;

// A scan of all leases each second instead of an index that every heartbeat would have to keep. Agent by agent, from
// where claims begin to count, because of the many dead rows before that. While nobody was there to hear a heartbeat,
// leases ran out without a fault of their workers: these have half a lease to be heard in.
const expiredSql = `
with now as materialized (select runplane.clock() as at)
select l.attempt_id as "attemptId" from now n cross join runplane.scan_starts s cross join lateral (
  select x.attempt_id from runplane.live_leases(s.agent_id) x
   where x.expires_at < n.at and x.lease_seconds <= 2 * $2::float8 or x.timeout_at <= n.at or x.cancel_deadline < n.at offset 0) l
 order by l.attempt_id limit $1`;

/**
 * Ends attempts whose lease was not extended or that ran too long. Each replica sweeps; whether an attempt is still
 * expired is decided under its run's lock, so each is ended once.
 */
export function createSweeper({ db, results, onError }: SweeperOptions): Duty {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let listensSince = 0;
  return new Duty({
    name: 'sweeper',
    onError,
    runOnce: async () => {
      const now = performance.now();
      if (now - lookedAt > awayMs) listensSince = now;
      const { rows } = await db.query<{ attemptId: string }>({
        name: 'expired-leases',
        text: expiredSql,
        values: [batch, (now - listensSince) / 1000],
      });
      try {
        await Promise.all(rows.map(({ attemptId }) => results.record({ attemptId, report: null })));
      } finally {
        // One that cannot be ended is no reason to wait with others.
        lookedAt = performance.now();
      }
      return rows.length === batch ? 0 : everyMs;
    },
  });
}
