import type { Queryable } from '../../db/pool.ts';
import { shippedPools } from '../../domain/registry.ts';
import { deleteRouteIn } from '../delete-route.ts';
import type { Noun } from '../rows.ts';
import { saveIn } from '../save.ts';
import type { Actor } from '../types.ts';
import { changeOf } from './changes.ts';
import { manifestKinds } from './kinds.ts';
import type { ParsedEntries } from './parse-entries.ts';
import type { StoredObject, StoredObjects } from './stored-objects.ts';
import type { ObjectChange } from './types.ts';

export interface Pruned {
  noun: Noun;
  object: StoredObject;
}

const reason = 'not in the manifest';
const shippedQueues = shippedPools.flatMap((pool) => pool.queues.map(({ name }) => name));

/**
 * What a manifest lacks and can be switched off: routes, jobs, agents that none of its jobs uses, queues that none of its
 * agents uses and that are not shipped. Throttles and pools cannot be, and do nothing by themselves.
 */
export function findPruned(stored: StoredObjects, { entries, names }: ParsedEntries): Pruned[] {
  const used = new Set(
    entries.flatMap(({ references }) => references.map(({ noun, name }) => `${noun} ${name}`)),
  );
  for (const name of shippedQueues) used.add(`queue ${name}`);
  return (['route', 'job', 'agent', 'queue'] as const).flatMap((noun) =>
    [...stored[noun].values()]
      .filter(({ name, isOff }) => {
        if (names.get(noun)?.has(name)) return false;
        return noun === 'route' || !(isOff || used.has(`${noun} ${name}`));
      })
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((object) => ({ noun, object })),
  );
}

/** Deletes a route, and switches off everything else; its row is locked. */
export async function prune(
  tx: Queryable,
  { noun, object: { id, name } }: Pruned,
  actor: Actor,
): Promise<ObjectChange | null> {
  if (noun === 'route') {
    const { rows } = await tx.query<{ version: number }>({
      text: 'select version from runplane.routes where id = $1',
      values: [id],
    });
    if ((await deleteRouteIn(tx, name, actor, reason)) === null) return null;
    const versions = { before: rows[0]?.version ?? null, after: null };
    return { action: 'delete', noun, name, versions, fields: [], state: null };
  }
  const kind = manifestKinds[noun];
  const off = noun === 'job' ? { enabled: false } : { paused: true };
  const spec = { ...(await kind.read(tx, id)), ...off };
  const saved = await saveIn(tx, kind, { name, ifVersion: null, spec }, actor, reason);
  if ('kind' in saved) throw new Error(`The ${noun} ${name} cannot be saved as it is: ${saved.message}`);
  return { ...changeOf(noun, saved), action: 'disable' };
}
