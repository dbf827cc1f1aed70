import type { Queryable } from '../../db/pool.ts';
import { lockNames, type Noun } from '../rows.ts';
import { manifestNouns } from './kinds.ts';

export interface StoredObject {
  id: string;
  name: string;
  version: number;
  /** Paused, or not enabled. */
  isOff: boolean;
}
export type StoredObjects = Readonly<Record<Noun, ReadonlyMap<string, StoredObject>>>;

const isOff: Readonly<Record<Noun, string>> = {
  throttle: 'false',
  pool: 'false',
  queue: 'paused',
  agent: 'paused',
  job: 'not enabled',
  route: 'not enabled',
};

/** Everything that is configured, by kind and name. */
export async function readStoredObjects(tx: Queryable): Promise<StoredObjects> {
  const { rows } = await tx.query<StoredObject & { noun: Noun }>({
    text: manifestNouns
      .map(
        (noun) =>
          `select '${noun}' as noun, id, name, version, ${isOff[noun]} as "isOff" from runplane.${noun}s`,
      )
      .join(' union all '),
  });
  const objects = Object.fromEntries(
    manifestNouns.map((noun) => [noun, new Map<string, StoredObject>()]),
  ) as Record<Noun, Map<string, StoredObject>>;
  for (const { noun, ...object } of rows) objects[noun].set(object.name, object);
  return objects;
}

/** Any number, as long as all that apply a manifest use the same. */
const applyLock = 7_241_905_114n;

/** One manifest after the other: each finds what it does not change as the other left it. */
export async function waitForOtherManifests(tx: Queryable): Promise<void> {
  await tx.query({ text: 'select pg_advisory_xact_lock($1)', values: [applyLock] });
}

/** What will be changed, and what will be created, of one kind. */
export interface ToLock {
  ids: string[];
  /** Of what was not there, and may be by now. */
  names: string[];
}

/**
 * Locks what will be changed against others who change it, and against claims, in the order in which those lock: agents,
 * then throttles, also those that an agent leaves or joins, each by id; then what claims do not lock. Before all of it,
 * the names of what will be created.
 */
export async function lockObjects(
  tx: Queryable,
  toLock: ReadonlyMap<Noun, ToLock>,
  joinedThrottles: readonly string[],
): Promise<void> {
  await lockNames(
    tx,
    [...toLock].flatMap(([noun, { names }]) => names.map((name) => ({ noun, name }))),
  );
  const agents = await lockAgents(tx, toLock);
  const throttles = toLock.get('throttle');
  await tx.query({
    text: `select from runplane.throttles t
            where t.id = any($1::uuid[]) or t.name = any($2)
               or t.id in (select x.throttle_id from runplane.agent_throttles x where x.agent_id = any($3::uuid[]))
            order by t.id for no key update`,
    values: [throttles?.ids ?? [], [...(throttles?.names ?? []), ...joinedThrottles], agents],
  });
  for (const noun of ['pool', 'queue', 'job', 'route'] as const) await lockRows(tx, noun, toLock.get(noun));
}

/** Also those of queues and pools that change (see lockClaims). Answers the ids of those that change themselves. */
async function lockAgents(tx: Queryable, toLock: ReadonlyMap<Noun, ToLock>): Promise<string[]> {
  const { ids, names } = toLock.get('agent') ?? { ids: [], names: [] };
  const { rows } = await tx.query<{ id: string; changes: boolean }>({
    text: `select a.id, a.id = any($1::uuid[]) or a.name = any($2) as changes from runplane.agents a
            where a.id = any($1::uuid[]) or a.name = any($2) or a.queue_id in (
              select q.id from runplane.queues q where q.id = any($3::uuid[]) or exists (
                select from runplane.pools p
                 where p.id = any($4::uuid[]) and runplane.serves(p.id, p.elastic, q.pool_id, q.shared_weight)))
            order by a.id for no key update`,
    values: [ids, names, toLock.get('queue')?.ids ?? [], toLock.get('pool')?.ids ?? []],
  });
  return rows.filter(({ changes }) => changes).map(({ id }) => id);
}

async function lockRows(tx: Queryable, noun: Noun, toLock: ToLock | undefined): Promise<void> {
  if (!toLock) return;
  await tx.query({
    text: `select id from runplane.${noun}s where id = any($1::uuid[]) or name = any($2) order by id for no key update`,
    values: [toLock.ids, toLock.names],
  });
}
