import { GraphQLError } from 'graphql';
import { CursorError } from '../changelog/cursor.ts';
import { SlowConsumerError } from '../changelog/slow-consumer.ts';
import type { Scope } from '../domain/credential.ts';
import { failureWithStack } from '../domain/failure.ts';
import { limits } from '../domain/limits.ts';
import { InvalidInputError } from '../domain/problems.ts';
import { isUnavailable } from '../domain/unavailable.ts';
import { ReadError } from '../read/errors.ts';
import { withoutValues } from './without-values.ts';

/** extensions.code of the errors that this schema gives. */
export type GraphQLErrorCode =
  | 'BAD_USER_INPUT'
  | 'BATCH_TOO_LARGE'
  | 'CURSOR_EXPIRED'
  | 'FORBIDDEN'
  | 'INTERNAL_SERVER_ERROR'
  | 'INVALID_CURSOR'
  | 'PAGE_TOO_LARGE'
  | 'SLOW_CONSUMER'
  | 'UNAUTHENTICATED'
  | 'UNAVAILABLE';

const graphqlError = (code: GraphQLErrorCode, message: string, more: object = {}): GraphQLError =>
  new GraphQLError(message, { extensions: { code, ...more } });

export const badUserInput = (field: string, message: string): GraphQLError =>
  graphqlError('BAD_USER_INPUT', message, { field });

export const lacksScope = (scope: Scope): GraphQLError =>
  graphqlError('FORBIDDEN', `This needs the scope ${scope}.`, { scope });

/** The caller lacks a scope, or is restricted. */
export const isForbidden = ({ extensions }: GraphQLError): boolean => extensions.code === 'FORBIDDEN';

/** A stream that a token does not reach. */
export const forbiddenStream = ({ message, scope }: { message: string; scope: Scope }): GraphQLError =>
  graphqlError('FORBIDDEN', message, { scope });

/** A credential ended while it was in use. */
export const unauthenticated = (): GraphQLError =>
  graphqlError('UNAUTHENTICATED', 'The credential is not valid any more.');

export function batchTooLarge(field: string, actual: number): GraphQLError {
  const message = `${field} has ${actual} entries; at most ${limits.batch} are allowed.`;
  return graphqlError('BATCH_TOO_LARGE', message, { field, limit: limits.batch, actual });
}

/** Errors of services as clients see them; others stay what they are. */
export function streamError(error: unknown): unknown {
  if (error instanceof CursorError) {
    return graphqlError(
      error.code,
      error.message,
      error.restartFrom === null ? {} : { cursor: error.restartFrom },
    );
  }
  if (error instanceof InvalidInputError) return badUserInput(error.problem.field ?? '', error.message);
  // A NUL in what is only looked up: nothing that is stored contains one, and Postgres says so.
  if (error instanceof Error && 'code' in error && error.code === '22021') {
    return graphqlError('BAD_USER_INPUT', 'A text contains NUL, which nothing that is stored contains.');
  }
  if (error instanceof RangeError && error.message.startsWith('Maximum call stack')) {
    return graphqlError('BAD_USER_INPUT', 'The document or a value in it is nested too deep.');
  }
  return error instanceof SlowConsumerError
    ? graphqlError('SLOW_CONSUMER', error.message, { limit: limits.streamUnreadSeconds })
    : error;
}

const isOfArguments = ({ message }: GraphQLError): boolean => message.startsWith('Argument "');

interface ErrorLog {
  error(fields: object, message: string): void;
}

/**
 * What a client may see of an error: expected ones as they are; of any other one only a number under which the log has
 * its cause. SQL and stacks never leave the server.
 */
export function maskError(error: unknown, requestId: string, log: ErrorLog): GraphQLError {
  const cause = (error instanceof GraphQLError && error.originalError) || error;
  if (error instanceof GraphQLError && (cause instanceof GraphQLError || cause instanceof ReadError)) {
    if (error.extensions.code !== undefined) return error;
    // A variable that a directive or a literal holds may only now be seen to be missing.
    if (isOfArguments(error)) {
      const { nodes, path } = error;
      return new GraphQLError(withoutValues(error), { nodes, path, extensions: { code: 'BAD_USER_INPUT' } });
    }
  }
  const shown = streamError(cause);
  const where = error instanceof GraphQLError ? { nodes: error.nodes, path: error.path } : {};
  if (shown instanceof GraphQLError && shown !== cause)
    return new GraphQLError(shown.message, { ...where, extensions: shown.extensions });
  const unavailable = isUnavailable(cause);
  const code = unavailable ? 'UNAVAILABLE' : 'INTERNAL_SERVER_ERROR';
  log.error({ requestId, code, error: failureWithStack(cause) }, 'a field failed');
  const message = unavailable
    ? 'The database cannot be reached or is too busy; repeat in a moment.'
    : 'The server failed; its log has the cause under the request id.';
  return new GraphQLError(message, { ...where, extensions: { code, requestId } });
}
