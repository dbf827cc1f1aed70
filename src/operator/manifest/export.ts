import type { Database, Queryable } from '../../db/pool.ts';
import type { Noun } from '../rows.ts';
import { isSame } from '../save.ts';
import { type AnyKind, manifestKinds, manifestNouns } from './kinds.ts';
import { readStoredObjects } from './stored-objects.ts';
import type { ManifestEntry } from './types.ts';

type Fields = Record<string, unknown>;

/** The whole configuration as entries that change nothing when they are applied, each without what it need not say. */
export function exportManifest(db: Database): Promise<ManifestEntry[]> {
  // One snapshot: a route that somebody adds meanwhile is not there without its job.
  const begin = `${db.begin}; set transaction isolation level repeatable read read only`;
  return db.inTransaction(begin, async (tx) => {
    const stored = await readStoredObjects(tx);
    const entries: ManifestEntry[] = [];
    for (const noun of manifestNouns) {
      const objects = [...stored[noun].values()].sort((a, b) => (a.name < b.name ? -1 : 1));
      for (const [index, { id, name }] of objects.entries())
        entries.push({ noun, index, input: await readInput(tx, noun, id, name) });
    }
    return entries;
  });
}

async function readInput(
  tx: Queryable,
  noun: Noun,
  id: string,
  name: string,
): Promise<ManifestEntry['input']> {
  const kind = manifestKinds[noun];
  const spec = await kind.read(tx, id);
  const given = { name, ...inputOf(noun, spec as Fields) };
  return shortest(kind, given, spec) as unknown as ManifestEntry['input'];
}

/** A spec in the form in which it is given. */
function inputOf(noun: Noun, spec: Fields): Fields {
  if (noun === 'job') {
    const steps = spec.steps as Fields[];
    return { ...spec, steps: steps.map((step) => without(step, defaultsOfStep)) };
  }
  if (noun !== 'agent') return spec;
  const { dispatchKind, handler, batchBySerialKey, ...fields } = spec;
  const dispatch =
    dispatchKind === 'INLINE'
      ? { inline: { handler } }
      : { pull: batchBySerialKey === true ? { batchBySerialKey } : {} };
  return { dispatch, ...fields };
}

const defaultsOfStep: Fields = {
  dependsOn: [],
  when: 'DEPENDENCIES_COMPLETED',
  cancellable: true,
  optional: false,
  input: null,
  assetKey: null,
  readsAssetKeys: [],
  maxAttempts: null,
};

const without = (fields: Fields, defaults: Fields): Fields =>
  Object.fromEntries(
    Object.entries(fields).filter(
      ([name, value]) => !(name in defaults && isSame([value], [defaults[name]])),
    ),
  );

/** Leaves out whatever gives the same without it. */
function shortest(kind: AnyKind, given: Fields & { name: string }, spec: object): Fields {
  const required = ['name', 'dispatch', 'pool', 'slotsPerReplica', 'steps', 'topic', 'job'];
  let shorter = given;
  for (const field of Object.keys(given)) {
    if (required.includes(field)) continue;
    const { [field]: _, ...rest } = shorter;
    const candidate = { ...rest, name: given.name };
    const parsed = kind.parse(candidate);
    if (isSame(kind.keep?.(parsed, null) ?? parsed, spec)) shorter = candidate;
  }
  return shorter;
}
