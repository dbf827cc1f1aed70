import { limits } from '../domain/limits.ts';
import { ReadError } from './errors.ts';

/** Which part of a list is asked for, as a client says it. */
export interface PageArgs {
  first?: number | null;
  after?: string | null;
  last?: number | null;
  before?: string | null;
}

export interface Edge<Row> {
  cursor: string;
  node: Row;
}

/** A part of a list. Whether there is more on the other side is only looked up when someone asks. */
export interface Page<Row> {
  edges: Edge<Row>[];
  hasNextPage(): Promise<boolean>;
  hasPreviousPage(): Promise<boolean>;
}

export interface PageRequest {
  limit: number;
  /** Counted from the end of the list. */
  backward: boolean;
  after: string | null;
  before: string | null;
}

/** Checks what a client asks for. More than a page may hold is refused, never cut. */
export function parsePage({ first, after, last, before }: PageArgs): PageRequest {
  if (first != null && last != null) {
    throw new ReadError('BAD_USER_INPUT', 'first and last cannot be given together.', 'last');
  }
  checkLimit('first', first);
  checkLimit('last', last);
  return {
    limit: first ?? last ?? limits.defaultPage,
    backward: last != null,
    after: after ?? null,
    before: before ?? null,
  };
}

export function pageTooLarge(field: string, actual: number): ReadError {
  const message = `${field} is ${actual}; a page has at most ${limits.page} entries.`;
  return new ReadError('PAGE_TOO_LARGE', message, field, { limit: limits.page, actual });
}

function checkLimit(field: 'first' | 'last', value: number | null | undefined): void {
  if (value == null) return;
  if (value > limits.page) throw pageTooLarge(field, value);
  if (value < 1) throw new ReadError('BAD_USER_INPUT', `${field} must be from 1 to ${limits.page}.`, field);
}
