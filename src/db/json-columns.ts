/**
 * Many rows as one JSON document of their columns. The database looks up how to write a type once per column, where
 * rows cost that for each value, and no name is repeated. Times come as text.
 */
export type JsonColumns<Row> = { [Name in keyof Row]: (Row[Name] extends Date ? string : Row[Name])[] };

/** Arguments of json_build_object: each column by its name and SQL. */
export const jsonColumns = (columns: Readonly<Record<string, string>>): string =>
  Object.entries(columns)
    .map(([name, sql]) => `'${name}', json_agg(${sql})`)
    .join(', ');

/** A value of a column. All columns of a document are of one length. */
export const cell = <Value>(column: readonly Value[], row: number): Value => column[row] as Value;
