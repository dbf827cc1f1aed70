import type { Queryable, Statement } from '../db/pool.ts';

/** The rows of a statement whose columns are named as the fields of Row. */
export async function readRows<Row extends object>(db: Queryable, statement: Statement): Promise<Row[]> {
  const { rows } = await db.query<Row & Record<string, unknown>>(statement);
  return rows;
}

/** Rows of a statement that takes one array of UUIDs, by their id. Ids without a row are absent. */
export async function readById<Row extends { id: string }>(
  db: Queryable,
  name: string,
  text: string,
  ids: readonly string[],
): Promise<Map<string, Row>> {
  const rows = await readRows<Row>(db, { name, text, values: [ids] });
  return new Map(rows.map((row) => [row.id, row]));
}

/** Rows by a key that several of them share, in the statement's order. Each key asked for has a list. */
export function groupRows<Row>(
  keys: readonly string[],
  rows: readonly Row[],
  keyOf: (row: Row) => string,
): Map<string, Row[]> {
  const groups = new Map<string, Row[]>(keys.map((key) => [key, []]));
  for (const row of rows) groups.get(keyOf(row))?.push(row);
  return groups;
}
