/** The conditions of a question and the values behind their parameters. */
export class Where {
  readonly values: unknown[];
  readonly #conditions: string[] = [];

  constructor(values: unknown[] = []) {
    this.values = values;
  }

  /** A parameter for the value, as it stands in SQL. */
  param(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  and(condition: string): void {
    this.#conditions.push(condition);
  }

  /** The column has one of the values; an absent list allows every value, an empty one none. */
  isOneOf(column: string, list: readonly unknown[] | null | undefined, type = 'text'): void {
    if (list != null) this.and(`${column} = any(${this.param(list)}::${type}[])`);
  }

  equals(column: string, value: unknown): void {
    if (value != null) this.and(`${column} = ${this.param(value)}`);
  }

  /** From after on, up to but not including before. */
  between(column: string, after: Date | null | undefined, before: Date | null | undefined): void {
    if (after != null) this.and(`${column} >= ${this.param(after)}::timestamptz`);
    if (before != null) this.and(`${column} < ${this.param(before)}::timestamptz`);
  }

  /** What add demands must not hold; a condition that is unknown, because a column is null, does not hold. */
  not(add: (inner: Where) => void): void {
    const inner = new Where(this.values);
    add(inner);
    this.and(`(${inner.toString()}) is not true`);
  }

  toString(): string {
    return this.#conditions.length === 0 ? 'true' : this.#conditions.join(' and ');
  }
}
