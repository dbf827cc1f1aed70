import type { Database, Queryable } from '../db/pool.ts';
import { transaction } from '../db/transaction.ts';
import { digest } from '../domain/digest.ts';
import { newUuid } from '../domain/ids.ts';
import {
  type IllegalState,
  type InvalidInput,
  isInvalidInput,
  type NotFound,
  parsed,
} from '../domain/problems.ts';
import { parseName } from '../domain/text.ts';
import { appendAudit } from './audit.ts';
import { parseIfVersion } from './parse-fields.ts';
import {
  findReferences,
  type IdOf,
  isNotFound,
  lockByName,
  lockNames,
  type Noun,
  type Reference,
} from './rows.ts';
import type { Actor, SaveOutcome } from './types.ts';

export interface Identity {
  id: string;
  name: string;
  version: number;
}

/**
 * What a save of one kind of object needs to know. A spec is the whole object as a user sees it: names instead of ids,
 * every default filled in. What is not part of it (paused, a throttle's notBefore) outlives a save.
 */
export interface ObjectKind<Input, Spec extends object> {
  noun: Noun;
  /** Checks everything that needs no database; throws InvalidInputError with all that is wrong. */
  parse(input: Input): Spec;
  /** What a spec names; the first that there is not is told. */
  references(spec: Spec): Reference[];
  /** Takes over what a spec leaves as it is. */
  keep?(spec: Spec, before: Spec | null): Spec;
  read(tx: Queryable, id: string): Promise<Spec>;
  /** Takes what comes before the object's own row in the lock order, of what claims lock. */
  lockFirst?(tx: Queryable, name: string): Promise<void>;
  /** The spec as columns of the kind's own table. */
  columns(spec: Spec, idOf: IdOf): Record<string, unknown>;
  /** Writes what lies in other tables; the object's own row is written, and locked, by then. */
  writeParts?(tx: Queryable, object: Identity, spec: Spec, idOf: IdOf, before: Spec | null): Promise<void>;
  /** Writes what others write too, for all objects that were changed together: so its locks are taken in their order. */
  settle?(tx: Queryable, saved: readonly Saved<Spec>[]): Promise<void>;
}

export interface SaveContext {
  db: Database;
  /** Called after each commit that changed something: work may have become possible. */
  onCommit(): void;
}

/** One save: parse, lock, compare, write, audit. */
export async function save<
  Input extends { name: string; ifVersion?: number | null },
  Spec extends object,
  Kind extends string,
>(
  context: SaveContext,
  kind: ObjectKind<Input, Spec>,
  success: Kind,
  input: Input,
  actor: Actor,
): Promise<SaveOutcome<Kind>> {
  const request = requestOf(kind, input);
  if (isInvalidInput(request)) return request;
  const outcome = await transaction(context.db, async (tx) => {
    await kind.lockFirst?.(tx, request.name);
    return saveIn(tx, kind, request, actor);
  });
  if ('kind' in outcome) return outcome;
  if (outcome.changed) context.onCommit();
  const { id, name, version } = outcome;
  return { kind: success, id, name, version };
}

export const requestOf = <Input extends { name: string; ifVersion?: number | null }, Spec extends object>(
  kind: ObjectKind<Input, Spec>,
  input: Input,
): SaveRequest<Spec> | InvalidInput =>
  parsed(() => ({
    name: parseName(input.name, 'name'),
    ifVersion: parseIfVersion(input.ifVersion),
    spec: kind.parse(input),
  }));

export interface SaveRequest<Spec> {
  name: string;
  ifVersion: number | null;
  spec: Spec;
}

export interface Saved<Spec> extends Identity {
  changed: boolean;
  /** Null: it was created. */
  before: (Spec & { version: number }) | null;
  spec: Spec;
}

/** A save within a transaction that may have others, of other kinds. */
export async function saveIn<Input, Spec extends object>(
  tx: Queryable,
  kind: ObjectKind<Input, Spec>,
  request: SaveRequest<Spec>,
  actor: Actor,
  reason: string | null = null,
): Promise<Saved<Spec> | NotFound | IllegalState> {
  const saved = await saveUnsettled(tx, kind, request, actor, reason);
  if (!('kind' in saved) && saved.changed) await kind.settle?.(tx, [saved]);
  return saved;
}

/** The same, where several of a kind are saved: the caller settles them together. */
export async function saveUnsettled<Input, Spec extends object>(
  tx: Queryable,
  kind: ObjectKind<Input, Spec>,
  { name, ifVersion, spec: given }: SaveRequest<Spec>,
  actor: Actor,
  reason: string | null = null,
): Promise<Saved<Spec> | NotFound | IllegalState> {
  for (;;) {
    const stored = await lockOrReserve(tx, kind.noun, name);
    const version = stored?.version ?? 0;
    if (ifVersion !== null && ifVersion !== version)
      return versionDiffers(kind.noun, name, version, ifVersion);
    const idOf = await findReferences(tx, kind.references(given));
    if (isNotFound(idOf)) return idOf;
    const current = stored ? await kind.read(tx, stored.id) : null;
    const before = current && { ...current, version };
    const spec = kind.keep?.(given, current) ?? given;
    if (stored && current && isSame(current, spec)) return { ...stored, name, changed: false, before, spec };

    const object: Identity = { id: stored?.id ?? newUuid(), name, version: version + 1 };
    const columns = kind.columns(spec, idOf);
    // The server's own start may create the name at the same moment: then this one sees what it made.
    if (stored) await updateRow(tx, kind.noun, object, columns);
    else if (!(await insertRow(tx, kind.noun, object, columns))) continue;
    await kind.writeParts?.(tx, object, spec, idOf, current);
    await appendAudit(tx, {
      actor,
      action: `${kind.noun}.save`,
      target: name,
      before,
      after: { ...spec, version: object.version },
      reason,
    });
    return { ...object, changed: true, before, spec };
  }
}

/** The row, locked; or none, and its name is this transaction's. */
async function lockOrReserve(
  tx: Queryable,
  noun: Noun,
  name: string,
): Promise<{ id: string; version: number } | null> {
  const stored = await lockByName(tx, noun, name);
  if (stored) return stored;
  await lockNames(tx, [{ noun, name }]);
  return lockByName(tx, noun, name);
}

export const isSame = (before: object, after: object): boolean => digest(before).equals(digest(after));

async function insertRow(
  tx: Queryable,
  noun: Noun,
  object: Identity,
  columns: Record<string, unknown>,
): Promise<boolean> {
  const names = ['id', 'name', 'version', ...Object.keys(columns)];
  const { rowCount } = await tx.query({
    text: `insert into runplane.${noun}s (${names.join(', ')}) values (${names.map((_, i) => `$${i + 1}`).join(', ')})
           on conflict (name) do nothing`,
    values: [object.id, object.name, object.version, ...Object.values(columns)],
  });
  return rowCount === 1;
}

async function updateRow(
  tx: Queryable,
  noun: Noun,
  object: Identity,
  columns: Record<string, unknown>,
): Promise<void> {
  const assignments = Object.keys(columns).map((column, i) => `${column} = $${i + 3}`);
  await tx.query({
    text: `update runplane.${noun}s set ${['version = $2', 'updated_at = runplane.clock()', ...assignments].join(', ')} where id = $1`,
    values: [object.id, object.version, ...Object.values(columns)],
  });
}

const versionDiffers = (noun: Noun, name: string, version: number, expected: number): IllegalState => ({
  kind: 'IllegalState',
  status: `version ${version}`,
  message:
    version === 0
      ? `There is no ${noun} ${JSON.stringify(name)} yet, but ifVersion is ${expected}; leave it out to create it.`
      : `The ${noun} ${JSON.stringify(name)} has version ${version}, but ifVersion is ${expected}: read it again, then repeat.`,
});
