import type { Queryable } from '../db/pool.ts';
import { type NotFound, notFound } from '../domain/problems.ts';

/** Kinds of configuration; the table of each is its plural. */
export type Noun = 'job' | 'agent' | 'throttle' | 'queue' | 'pool' | 'route';

export const isNotFound = (value: unknown): value is NotFound =>
  typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'NotFound';

/**
 * Locks an object's row against other changes and, where claims lock it too (agents, throttles), against claims. A
 * statement of its own: what is read in later ones is as of after the wait.
 */
export async function lockByName(
  tx: Queryable,
  noun: Noun,
  name: string,
): Promise<{ id: string; version: number } | null> {
  const { rows } = await tx.query<{ id: string; version: number }>({
    text: `select id, version from runplane.${noun}s where name = $1 for no key update`,
    values: [name],
  });
  return rows[0] ?? null;
}

/**
 * Waits for the claims that are under way on the agents of a queue, or of all queues that a pool runs, and keeps others
 * away until the change of it is committed: claims lock agents, and read under these locks what queues and pools allow.
 * Agents come before queues and pools in the lock order.
 */
export async function lockClaims(tx: Queryable, noun: 'queue' | 'pool', name: string): Promise<void> {
  await tx.query({
    text: `select from runplane.agents a where a.queue_id in (${
      noun === 'queue'
        ? 'select q.id from runplane.queues q where q.name = $1'
        : `select q.id from runplane.queues q
             join runplane.pools p on runplane.serves(p.id, p.elastic, q.pool_id, q.shared_weight) where p.name = $1`
    }) order by a.id for no key update`,
    values: [name],
  });
}

export interface ObjectName {
  noun: Noun;
  name: string;
}

/**
 * Reserves names for whoever creates what has them, so that nobody waits for an insert of the same name while he holds
 * other locks: this comes before all of them. Others who create it wait here, and find it then.
 */
export async function lockNames(tx: Queryable, names: readonly ObjectName[]): Promise<void> {
  if (names.length === 0) return;
  await tx.query({
    text: `select pg_advisory_xact_lock(n.hash) from (
             select distinct hashtextextended('runplane.name ' || u.noun || ' ' || u.name, 4) as hash
               from unnest($1::text[], $2::text[]) u(noun, name) order by 1) n`,
    values: [names.map(({ noun }) => noun), names.map(({ name }) => name)],
  });
}

/** The ids of objects by name, or the first name that there is none of. Objects that are referred to are never deleted. */
export async function findIds(
  tx: Queryable,
  noun: Noun,
  names: readonly string[],
): Promise<Map<string, string> | NotFound> {
  const ids = await selectIds(tx, noun, names);
  const missing = names.find((name) => !ids.has(name));
  return missing === undefined ? ids : notFound(noun, missing);
}

/** The ids of those that there are. */
async function selectIds(tx: Queryable, noun: Noun, names: readonly string[]): Promise<Map<string, string>> {
  if (names.length === 0) return new Map();
  const { rows } = await tx.query<{ id: string; name: string }>({
    text: `select id, name from runplane.${noun}s where name = any($1)`,
    values: [names],
  });
  return new Map(rows.map(({ id, name }) => [name, id]));
}

/** Where an object names another one. */
export interface Reference extends ObjectName {
  /** The field of the input that has the name. */
  field: string;
}

/** The id of an object that is referred to. */
export type IdOf = (noun: Noun, name: string) => string;

/** The ids of all that is referred to, or the first that there is not. */
export async function findReferences(
  tx: Queryable,
  references: readonly Reference[],
): Promise<IdOf | NotFound> {
  const found = new Map<Noun, Map<string, string>>();
  for (const noun of new Set(references.map((reference) => reference.noun))) {
    const ofNoun = references.filter((reference) => reference.noun === noun);
    const ids = await selectIds(
      tx,
      noun,
      ofNoun.map(({ name }) => name),
    );
    const missing = ofNoun.find(({ name }) => !ids.has(name));
    if (missing) return notFound(noun, missing.name, missing.field);
    found.set(noun, ids);
  }
  return (noun, name) => {
    const id = found.get(noun)?.get(name);
    if (id === undefined) throw new Error(`The ${noun} ${name} is used and not referred to.`);
    return id;
  };
}

/** A row that was there a statement ago; one that is locked stays. */
export class RowGone extends Error {}

/** The one row of a query by id. */
export async function readRow<Row extends object>(tx: Queryable, text: string, id: string): Promise<Row> {
  const { rows } = await tx.query<Row & Record<string, unknown>>({ text, values: [id] });
  const row = rows[0];
  if (!row) throw new RowGone(`The row ${id} is gone.`);
  return row;
}
