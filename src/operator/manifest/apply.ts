import type { Queryable } from '../../db/pool.ts';
import { transaction } from '../../db/transaction.ts';
import type { JsonObject } from '../../domain/json.ts';
import { type Noun, RowGone } from '../rows.ts';
import { isSame, type SaveContext, saveIn } from '../save.ts';
import type { Actor } from '../types.ts';
import { changeOf, stateOf } from './changes.ts';
import { manifestKinds, manifestNouns } from './kinds.ts';
import { type ParsedEntries, type ParsedEntry, parseEntries } from './parse-entries.ts';
import { findPruned, prune } from './prune.ts';
import {
  lockObjects,
  readStoredObjects,
  type StoredObjects,
  waitForOtherManifests,
} from './stored-objects.ts';
import type { ApplyOptions, ApplyOutcome, ManifestEntry, ManifestProblem, ObjectChange } from './types.ts';

/** What is found out in a transaction that must leave nothing behind. */
class Undone extends Error {
  readonly outcome: ApplyOutcome;
  constructor(outcome: ApplyOutcome) {
    super('The transaction is rolled back.');
    this.outcome = outcome;
  }
}

/**
 * Makes the configuration what a manifest says, in one transaction, or reports everything that is wrong with it. What is
 * as it should be already is neither locked nor written. What is not is compared again under its lock: so what is told
 * is what was changed, also of what somebody else saved meanwhile.
 */
export async function applyManifest(
  context: SaveContext,
  entries: readonly ManifestEntry[],
  options: ApplyOptions,
): Promise<ApplyOutcome> {
  const parsed = parseEntries(entries, options.misshapen);
  try {
    const outcome = await transaction(context.db, async (tx) => {
      const done = await applyIn(tx, parsed, options);
      if (done.kind === 'Refused' || options.dryRun) throw new Undone(done);
      return done;
    });
    if (outcome.changes.some(({ action }) => action !== 'unchanged')) context.onCommit();
    return outcome;
  } catch (error) {
    if (error instanceof Undone) return error.outcome;
    throw error;
  }
}

async function applyIn(
  tx: Queryable,
  parsed: ParsedEntries,
  { actor, prune: prunes, refused }: ApplyOptions,
): Promise<ApplyOutcome> {
  await waitForOtherManifests(tx);
  const stored = await readStoredObjects(tx);
  const problems = [...parsed.problems, ...findDangling(parsed, stored)];
  if (problems.length > 0 || refused) return { kind: 'Refused', problems: inOrder(problems) };

  const unchanged = await findUnchanged(tx, parsed.entries, stored);
  const toSave = parsed.entries.filter((entry) => !unchanged.has(entry));
  const pruned = prunes ? findPruned(stored, parsed) : [];
  const ids = new Map<Noun, string[]>();
  const toLock = [...toSave.map(({ noun, name }) => ({ noun, object: stored[noun].get(name) })), ...pruned];
  for (const { noun, object } of toLock) if (object) ids.set(noun, [...(ids.get(noun) ?? []), object.id]);
  const joined = toSave.flatMap(({ references }) => references.filter(({ noun }) => noun === 'throttle'));
  await lockObjects(
    tx,
    ids,
    joined.map(({ name }) => name),
  );

  const changes: ObjectChange[] = [];
  for (const entry of inOrder(parsed.entries)) {
    const change = unchanged.get(entry) ?? (await saveEntry(tx, entry, actor));
    if ('message' in change) problems.push(change);
    else changes.push(change);
  }
  if (problems.length > 0) return { kind: 'Refused', problems };
  for (const object of pruned) {
    const change = await prune(tx, object, actor);
    if (change) changes.push(change);
  }
  return { kind: 'Applied', changes };
}

/** By kind, each after what it names, and in the order of the manifest. */
const inOrder = <At extends { noun: Noun; index: number }>(things: readonly At[]): At[] =>
  [...things].sort(
    (a, b) => manifestNouns.indexOf(a.noun) - manifestNouns.indexOf(b.noun) || a.index - b.index,
  );

/** Names of what is neither in the manifest nor there. */
const findDangling = ({ entries, names }: ParsedEntries, stored: StoredObjects): ManifestProblem[] =>
  entries.flatMap(({ noun, index, references }) =>
    references
      .filter((to) => !names.get(to.noun)?.has(to.name) && !stored[to.noun].has(to.name))
      .map(({ noun: missing, name, field }) => ({
        noun,
        index,
        field,
        message: `There is no ${missing} ${JSON.stringify(name)}, neither in the manifest nor in the database.`,
      })),
  );

async function findUnchanged(
  tx: Queryable,
  entries: readonly ParsedEntry[],
  stored: StoredObjects,
): Promise<Map<ParsedEntry, ObjectChange>> {
  const unchanged = new Map<ParsedEntry, ObjectChange>();
  for (const entry of entries) {
    const { noun, name } = entry;
    const object = stored[noun].get(name);
    if (!object) continue;
    const kind = manifestKinds[noun];
    const current = await kind.read(tx, object.id).catch(unlessGone);
    if (!current) continue;
    const spec = kind.keep?.(entry.spec, current) ?? entry.spec;
    if (!isSame(current, spec)) continue;
    const versions = { before: object.version, after: object.version };
    const state = stateOf(spec as JsonObject);
    unchanged.set(entry, { action: 'unchanged', noun, name, versions, fields: [], state });
  }
  return unchanged;
}

/** Somebody deletes a route: then it is one to create. */
function unlessGone(error: unknown): null {
  if (error instanceof RowGone) return null;
  throw error;
}

async function saveEntry(
  tx: Queryable,
  entry: ParsedEntry,
  actor: Actor,
): Promise<ObjectChange | ManifestProblem> {
  const { noun, index } = entry;
  const saved = await saveIn(tx, manifestKinds[noun], entry, actor);
  if (!('kind' in saved)) return changeOf(noun, saved);
  return { noun, index, field: saved.kind === 'IllegalState' ? 'ifVersion' : null, message: saved.message };
}
