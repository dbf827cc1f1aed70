import { limits } from './limits.ts';
import { parseInteger, parseOptionalInteger } from './scalars.ts';

/** Higher first. */
export const parsePriority = (value: number, field: string): number =>
  parseInteger(value, field, limits.priority.min, limits.priority.max);

/** Null: nothing was said. */
export const parseOptionalPriority = (value: number | null | undefined, field: string): number | null =>
  value == null ? null : parsePriority(value, field);

/** Attempts that count before a task fails; null: the agent's retry policy says it. */
export const parseMaxAttempts = (value: number | null | undefined, field: string): number | null =>
  parseOptionalInteger(value, field, 1, limits.maxAttempts);

/** Tokens that a task is expected to use; null: nothing was said. */
export const parseEstimate = (value: number | null | undefined, field: string): number | null =>
  parseOptionalInteger(value, field, 0, Number.MAX_SAFE_INTEGER);
