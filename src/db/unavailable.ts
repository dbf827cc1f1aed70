import pg from 'pg';
import type { Unavailable } from '../domain/problems.ts';
import { isRepeatable } from './transaction.ts';

// Connection exceptions, insufficient resources, operator intervention (shutdown, cancelled statements).
const unavailableClasses = ['08', '53', '57'];
const systemCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EHOSTUNREACH',
]);
// The driver gives these no code.
const driverMessages =
  /Connection terminated|timeout exceeded when trying to connect|not queryable|Cannot use a pool after/;

/** Whether a statement failed because the database could not be reached or would not work now, whatever it said. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) {
    return isRepeatable(error) || unavailableClasses.includes((error.code ?? '').slice(0, 2));
  }
  if (!(error instanceof Error)) return false;
  const { code } = error as Error & { code?: string };
  return (code !== undefined && systemCodes.has(code)) || driverMessages.test(error.message);
}

/** Whether it was applied is unknown then: the caller repeats with the same key. */
export async function orUnavailable<T>(outcome: Promise<T>): Promise<T | Unavailable> {
  try {
    return await outcome;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return {
      kind: 'Unavailable',
      message: 'The database could not be reached or did not answer in time. Repeat with the same key.',
      retryAfterSeconds: 1,
    };
  }
}
