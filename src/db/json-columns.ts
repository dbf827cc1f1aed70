type AsJson<Row> = { [Name in keyof Row]: Row[Name] extends Date ? string : Row[Name] };

/**
 * Many rows as one JSON document of their columns. The database looks up how to write a type once per column, where
 * rows cost that for each value, and no name is repeated. Times come as text.
 */
export type JsonColumns<Row> = { [Name in keyof Row]: AsJson<Row>[Name][] };

/** Arguments of json_build_object: each column by its name and SQL. */
export const jsonColumns = (columns: Readonly<Record<string, string>>): string =>
  Object.entries(columns)
    .map(([name, sql]) => `'${name}', json_agg(${sql})`)
    .join(', ');

/** The rows of a document, whose columns are all of one length. */
export function rowsOf<Row extends object>(columns: JsonColumns<Row>): AsJson<Row>[] {
  const entries = Object.entries<readonly unknown[]>(columns);
  const rows = (entries[0]?.[1] ?? []).map((_, i) => {
    const row: Record<string, unknown> = {};
    for (const [name, values] of entries) row[name] = values[i];
    return row;
  });
  return rows as AsJson<Row>[];
}
