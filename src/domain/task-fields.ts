import { limits } from './limits.ts';
import { InvalidInputError } from './problems.ts';
import { parseInteger } from './text.ts';

/** Higher first. */
export const parsePriority = (value: number, field: string): number =>
  parseInteger(value, field, -limits.priority, limits.priority);

export const parseMaxAttempts = (value: number, field: string): number =>
  parseInteger(value, field, 1, limits.maxAttempts);

export const parseEstimate = (value: number | null | undefined, field: string): number | null =>
  value === null || value === undefined ? null : parseInteger(value, field, 0, Number.MAX_SAFE_INTEGER);

export function parseAvailableAt(at: Date | null | undefined, field = 'availableAt'): Date | null {
  if (!at) return null;
  const year = at.getUTCFullYear();
  if (Number.isNaN(year) || year < 1970 || year > 9999) {
    throw new InvalidInputError(field, `${field} must be a time in the years 1970 to 9999.`);
  }
  return at;
}
