import type { Unavailable } from '../domain/problems.ts';
import { isUnavailable } from '../domain/unavailable.ts';

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
