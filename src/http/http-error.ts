import type { GraphQLError } from 'graphql';
import type { ErrorCode } from '../errors.ts';

/** What an error tells besides its code, as extensions, and the seconds after which it is worth another try. */
export interface HttpErrorDetails {
  extensions?: Readonly<Record<string, unknown>>;
  retryAfterSeconds?: number;
  /** What the answer lists, where that is more than one error or has places in the document. */
  errors?: readonly GraphQLError[];
  /** Further headers of the answer. */
  headers?: Readonly<Record<string, string>>;
}

/** A request that is refused before GraphQL sees it. */
export class HttpError extends Error {
  readonly status: number;
  readonly code: ErrorCode;
  readonly details: HttpErrorDetails;

  constructor(status: number, code: ErrorCode, message: string, details: HttpErrorDetails = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** The refusal of an operation that cannot be executed. */
export const cannotExecute = (errors: readonly GraphQLError[]): HttpError =>
  new HttpError(400, 'BAD_REQUEST', errors[0]?.message ?? '', { errors });

/** The refusal of an operation that its caller may get nothing of. */
export const forbiddenOperation = (errors: readonly GraphQLError[]): HttpError =>
  new HttpError(403, 'FORBIDDEN', errors[0]?.message ?? '', { errors });
