import type { Queryable } from '../db/pool.ts';
import type { IdempotencyKey } from './parse-launch.ts';

export interface Remembered {
  objectId: string;
  digest: Buffer;
  /** Where in the change log to watch the object from. */
  xid: bigint;
}

const findSql = `
select r.kind, r.scope, r.key_hash as "keyHash", r.object_id as "objectId", r.digest, r.position::text as xid
  from unnest($1::text[], $2::text[], $3::bytea[]) as k(kind, scope, key_hash)
  join runplane.idempotency_records r on r.kind = k.kind and r.scope = k.scope and r.key_hash = k.key_hash`;

// Sorted, so that two groups with the same keys never wait for each other in a circle.
const rememberSql = `
insert into runplane.idempotency_records (kind, scope, key_hash, digest, object_id, debounced, position)
select k.kind, k.scope, k.key_hash, k.digest, k.object_id, k.position is not null, coalesce(k.position::xid8, pg_snapshot_xmin(pg_current_snapshot()))
  from unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[], $5::uuid[], $6::text[]) as k(kind, scope, key_hash, digest, object_id, position)
 order by k.kind, k.scope, k.key_hash
on conflict (kind, scope, key_hash) do nothing
returning kind, scope, key_hash as "keyHash"`;

interface KeyRow {
  kind: string;
  scope: string;
  keyHash: Buffer;
}

/** Names a key within a process. */
export const keyName = (key: { kind: string; scope: string; hash: Buffer }): string =>
  `${key.kind}/${key.scope}/${key.hash.toString('base64')}`;
const rowName = (row: KeyRow): string => keyName({ kind: row.kind, scope: row.scope, hash: row.keyHash });

/** What was made with these keys before. */
export async function findRemembered(
  tx: Queryable,
  keys: readonly IdempotencyKey[],
): Promise<Map<string, Remembered>> {
  if (keys.length === 0) return new Map();
  const { rows } = await tx.query<KeyRow & { objectId: string; digest: Buffer; xid: string }>({
    name: 'find-idempotency',
    text: findSql,
    values: [keys.map((k) => k.kind), keys.map((k) => k.scope), keys.map((k) => k.hash)],
  });
  return new Map(
    rows.map((r) => [rowName(r), { objectId: r.objectId, digest: r.digest, xid: BigInt(r.xid) }]),
  );
}

export interface KeyedObject {
  key: IdempotencyKey;
  objectId: string;
  /** Where in the change log to watch the object from. Null when the launch is not debounced: now. */
  position: bigint | null;
}

/** Remembers what the keys make. The names of those that another transaction remembered first are returned. */
export async function remember(tx: Queryable, entries: readonly KeyedObject[]): Promise<Set<string>> {
  if (entries.length === 0) return new Set();
  const { rows } = await tx.query<KeyRow>({
    name: 'remember-idempotency',
    text: rememberSql,
    values: [
      entries.map(({ key }) => key.kind),
      entries.map(({ key }) => key.scope),
      entries.map(({ key }) => key.hash),
      entries.map(({ key }) => key.digest),
      entries.map(({ objectId }) => objectId),
      entries.map(({ position }) => position?.toString() ?? null),
    ],
  });
  const won = new Set(rows.map(rowName));
  return new Set(entries.map(({ key }) => keyName(key)).filter((name) => !won.has(name)));
}
