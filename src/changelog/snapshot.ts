import type { Queryable } from '../db/pool.ts';

/** The snapshot now, as text: xmin:xmax:in-progress. */
export async function readSnapshot(db: Queryable): Promise<string> {
  const { rows } = await db.query<{ snapshot: string }>({
    name: 'snapshot',
    text: 'select pg_current_snapshot()::text as snapshot',
  });
  return rows[0]?.snapshot ?? '';
}

/** Transactions before it are over. */
export const horizonOf = (snapshot: string): bigint => BigInt(snapshot.split(':')[0] ?? 0);
/** Transactions from here on had not begun. */
export const endOf = (snapshot: string): bigint => BigInt(snapshot.split(':')[1] ?? 0);
/** Those between that were under way, in ascending order. */
export const openIn = (snapshot: string): bigint[] =>
  (snapshot.split(':')[2] ?? '').split(',').filter(Boolean).map(BigInt);
