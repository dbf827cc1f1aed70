import type { Database } from '../../db/pool.ts';
import { transactionByKey } from '../../db/transaction.ts';
import { nilUuid } from '../../domain/ids.ts';
import { batchRows, keptWithKey, oldBound } from './old-pages.ts';

/** A page in id order, of which what is too old goes at once. */
const deletePage = (table: string, rows: number, isOld: string, more = ''): string => `
with now as materialized (
  select c.at - make_interval(days => $1) as kept_since, c.at - ${keptWithKey} as keys_kept_since from (select runplane.clock() as at) c),
bound as materialized (select ${oldBound('$1')} as id),
page as materialized (
  select x.id from runplane.${table} x where x.id > $2 and x.id < (select b.id from bound b) order by x.id limit ${rows}),
gone as (
  delete from runplane.${table} x using page p, now n where x.id = p.id and ${isOld} returning x.*)${more}
select (select count(*) from gone)::int as deleted, (select count(*) from page)::int as looked, ${rows} as "pageRows",
       (select p.id from page p order by p.id desc limit 1) as last`;

const tables = {
  // An event goes with the record of its idempotency key, which is a second row.
  events: deletePage(
    'events',
    batchRows / 2,
    `x.received_at < n.kept_since and (x.idempotency_key is null or x.received_at < n.keys_kept_since)
     and not exists (select from runplane.runs r where r.event_id = x.id)`,
    `,
keys as (
  delete from runplane.idempotency_records i using gone g
   where i.kind = 'event' and i.scope = g.topic and i.key_hash = sha256(convert_to(g.idempotency_key, 'UTF8')) and i.object_id = g.id)`,
  ),
  auditEntries: deletePage('audit_entries', batchRows, 'x.at < n.kept_since'),
  ingestIncidents: deletePage('ingest_incidents', batchRows, 'x.at < n.kept_since'),
  workers: deletePage(
    'workers',
    batchRows,
    'x.last_seen_at < n.kept_since and not exists (select from runplane.leases l where l.worker_id = x.id)',
    `,
asks as (delete from runplane.worker_asks k using gone g where k.worker_id = g.id)`,
  ),
} as const;

// The audit log refuses to be changed by who does not say this in the same transaction.
const maySql = `select set_config('runplane.deletes_old_audit_entries', 'on', true)`;

export type SimpleTable = keyof typeof tables;

/** Deletes what is too old of the next page of a table, in one batch. after null: there are no further pages. */
export async function deleteOld(
  db: Database,
  table: SimpleTable,
  keptDays: number,
  after: string | null,
): Promise<{ deleted: number; after: string | null }> {
  const { rows } = await transactionByKey(db, async (tx) => {
    if (table === 'auditEntries') await tx.query({ text: maySql });
    return tx.query<{ deleted: number; looked: number; pageRows: number; last: string | null }>({
      name: `delete-old-${table}`,
      text: tables[table],
      values: [keptDays, after ?? nilUuid],
    });
  });
  const { deleted = 0, looked = 0, pageRows = 1, last = null } = rows[0] ?? {};
  return { deleted, after: looked === pageRows ? last : null };
}
