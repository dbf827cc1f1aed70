import type { Queryable } from '../../db/pool.ts';
import { transaction } from '../../db/transaction.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { IllegalState, NotFound } from '../../domain/problems.ts';
import { type Noun, RowGone } from '../rows.ts';
import { isSame, type SaveContext, type Saved, saveUnsettled } from '../save.ts';
import { changeOf, stateOf } from './changes.ts';
import { manifestKinds, manifestNouns } from './kinds.ts';
import { type ParsedEntries, type ParsedEntry, parseEntries } from './parse-entries.ts';
import { findPruned, type Pruned, prune } from './prune.ts';
import {
  lockObjects,
  readStoredObjects,
  type StoredObjects,
  type ToLock,
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
  const joined = toSave.flatMap(({ references }) => references.filter(({ noun }) => noun === 'throttle'));
  await lockObjects(
    tx,
    findToLock(toSave, pruned, stored),
    joined.map(({ name }) => name),
  );

  const changes: ObjectChange[] = [];
  const saved = new Map<Noun, Saved<object>[]>();
  for (const entry of inOrder(parsed.entries)) {
    const known = unchanged.get(entry);
    if (known) {
      changes.push(known);
      continue;
    }
    const { noun } = entry;
    const done = await saveUnsettled(tx, manifestKinds[noun], entry, actor);
    if ('kind' in done) {
      problems.push(problemOf(entry, done));
      continue;
    }
    changes.push(changeOf(noun, done));
    if (done.changed) saved.set(noun, [...(saved.get(noun) ?? []), done]);
  }
  if (problems.length > 0) return { kind: 'Refused', problems };
  for (const noun of manifestNouns) await manifestKinds[noun].settle?.(tx, saved.get(noun) ?? []);
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

/** A route can be deleted meanwhile: then its name is needed, too. */
function findToLock(
  toSave: readonly ParsedEntry[],
  pruned: readonly Pruned[],
  stored: StoredObjects,
): Map<Noun, ToLock> {
  const toLock = new Map<Noun, ToLock>();
  const ofNoun = (noun: Noun): ToLock => {
    const known = toLock.get(noun) ?? { ids: [], names: [] };
    toLock.set(noun, known);
    return known;
  };
  for (const { noun, name } of toSave) {
    const object = stored[noun].get(name);
    if (object) ofNoun(noun).ids.push(object.id);
    if (!object || noun === 'route') ofNoun(noun).names.push(name);
  }
  for (const { noun, object } of pruned) ofNoun(noun).ids.push(object.id);
  return toLock;
}

const problemOf = (
  { noun, index }: ParsedEntry,
  { kind, message }: NotFound | IllegalState,
): ManifestProblem => ({
  noun,
  index,
  field: kind === 'IllegalState' ? 'ifVersion' : null,
  message,
});
