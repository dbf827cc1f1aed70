import type { Database } from '../db/pool.ts';

/** What keeps the change log's horizon where it is, as far as this user of the database may know. */
export interface HorizonBlocker {
  kind: 'SESSION' | 'PREPARED_TRANSACTION';
  /** Of a session. */
  pid: number | null;
  database: string | null;
  user: string | null;
  /** Of a session. */
  applicationName: string | null;
  /** Of a prepared transaction: what COMMIT PREPARED and ROLLBACK PREPARED take. */
  globalId: string | null;
  /** Of a session; null where only members of pg_read_all_stats see it. */
  state: string | null;
  /** When its transaction began or was prepared; null likewise. */
  openSince: Date | null;
}

/**
 * Whose transaction it is. Snapshots wait for nothing but transactions that have a number: those of sessions and those
 * that were prepared, in any database. What only reads, and the xmin of replication slots and standbys, holds back vacuum
 * but never the horizon.
 */
const blockerSql = `
with held as materialized (select $1::text::xid8::xid as xid)
select 'SESSION' as kind, a.pid, a.datname as database, a.usename as "user", a.application_name as "applicationName",
  null as "globalId", a.state, a.xact_start as "openSince"
from held join pg_stat_activity a on a.backend_xid = held.xid
union all
select 'PREPARED_TRANSACTION', null, p.database, p.owner, null, p.gid, null, p.prepared
from held join pg_prepared_xacts p on p.transaction = held.xid
limit 1`;

/** Null: it is over by now, or the database does not show it. */
export async function readBlocker(db: Database, horizon: bigint): Promise<HorizonBlocker | null> {
  const { rows } = await db.query<HorizonBlocker & Record<string, unknown>>({
    name: 'horizon-blocker',
    text: blockerSql,
    values: [String(horizon)],
  });
  return rows[0] ?? null;
}
