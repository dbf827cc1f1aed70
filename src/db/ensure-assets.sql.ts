import { newUuid } from '../domain/ids.ts';
import type { Queryable } from './pool.ts';

// In the byte order of keys, so that two transactions with the same keys never wait for each other in a circle.
const ensureAssetsSql = `
insert into runplane.assets (id, key) select a.id, a.key from unnest($1::uuid[], $2::text[]) as a(id, key) order by a.key collate "C"
on conflict (key) do nothing`;

/** An asset exists from when a job or a result first names it. */
export async function ensureAssets(tx: Queryable, keys: Iterable<string>): Promise<void> {
  const distinct = [...new Set(keys)];
  if (distinct.length === 0) return;
  await tx.query({
    name: 'ensure-assets',
    text: ensureAssetsSql,
    values: [distinct.map(() => newUuid()), distinct],
  });
}
