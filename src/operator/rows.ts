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

/** The ids of objects by name, or the first name that there is none of. Objects that are referred to are never deleted. */
export async function findIds(
  tx: Queryable,
  noun: Noun,
  names: readonly string[],
): Promise<Map<string, string> | NotFound> {
  if (names.length === 0) return new Map();
  const { rows } = await tx.query<{ id: string; name: string }>({
    text: `select id, name from runplane.${noun}s where name = any($1)`,
    values: [names],
  });
  const ids = new Map(rows.map(({ id, name }) => [name, id]));
  const missing = names.find((name) => !ids.has(name));
  return missing === undefined ? ids : notFound(noun, missing);
}

export async function findId(tx: Queryable, noun: Noun, name: string): Promise<string | NotFound> {
  const ids = await findIds(tx, noun, [name]);
  return isNotFound(ids) ? ids : (ids.get(name) ?? notFound(noun, name));
}

/** The one row of a query by id. */
export async function readRow<Row extends object>(tx: Queryable, text: string, id: string): Promise<Row> {
  const { rows } = await tx.query<Row & Record<string, unknown>>({ text, values: [id] });
  const row = rows[0];
  if (!row) throw new Error(`The row ${id} is gone although it is locked.`);
  return row;
}
