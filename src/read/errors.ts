export type ReadErrorCode = 'INVALID_CURSOR' | 'PAGE_TOO_LARGE' | 'BAD_USER_INPUT';

/** A question that cannot be answered as it was asked. */
export class ReadError extends Error {
  readonly code: ReadErrorCode;
  /** The argument or filter field that is wrong. */
  readonly field: string | null;
  readonly #exceeded: { limit: number; actual: number } | null;

  constructor(
    code: ReadErrorCode,
    message: string,
    field: string | null = null,
    exceeded: { limit: number; actual: number } | null = null,
  ) {
    super(message);
    this.code = code;
    this.field = field;
    this.#exceeded = exceeded;
  }

  /** What a GraphQL error that carries this one tells of it. */
  get extensions(): { code: ReadErrorCode; field?: string; limit?: number; actual?: number } {
    return { code: this.code, ...(this.field !== null && { field: this.field }), ...this.#exceeded };
  }
}
