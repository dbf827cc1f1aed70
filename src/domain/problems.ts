import type { Scope } from './credential.ts';

/** Expected failures of commands. They are values, not exceptions: each names what to change. */
export interface InvalidInput {
  kind: 'InvalidInput';
  message: string;
  field: string | null;
}
export interface NotFound {
  kind: 'NotFound';
  message: string;
}
/** The caller's credential lacks a scope, or is restricted to others than what the input names. */
export interface Forbidden {
  kind: 'Forbidden';
  message: string;
  scope: Scope;
}
export interface IllegalState {
  kind: 'IllegalState';
  message: string;
  status: string;
}
export interface JobNotFound {
  kind: 'JobNotFound';
  message: string;
}
export interface IdempotencyConflict {
  kind: 'IdempotencyConflict';
  message: string;
  /** UUID of the run or event that the key made. */
  existingId: string;
}
export interface ConfigError {
  message: string;
  reason: 'MISSING_REQUIRED_FIELD' | 'FIELD_NOT_DEFINED' | 'TYPE_MISMATCH' | 'CONSTRAINT_VIOLATED';
  path: string[];
}
export interface RunConfigValidationInvalid {
  kind: 'RunConfigValidationInvalid';
  message: string;
  errors: ConfigError[];
}
/** Whether it was applied is unknown: repeat with the same key. */
export interface Unavailable {
  kind: 'Unavailable';
  message: string;
  retryAfterSeconds: number | null;
}
export interface LeaseTokenInvalid {
  kind: 'LeaseTokenInvalid';
  message: string;
}
export interface ResultConflict {
  kind: 'ResultConflict';
  message: string;
  attemptId: string;
}

export const invalidInput = (field: string | null, message: string): InvalidInput => ({
  kind: 'InvalidInput',
  message,
  field,
});
/** Names that are there are no longer; what else is asked for may have any length. */
const quotedCharacters = 200;

/** With the field that has the name, where there are several. */
export function notFound(what: string, name: string, field: string | null = null): NotFound {
  const quoted = JSON.stringify(
    name.length > quotedCharacters ? `${name.slice(0, quotedCharacters)}…` : name,
  );
  return {
    kind: 'NotFound',
    message: `There is no ${what} ${quoted}${field === null ? '' : `, which ${field} names`}.`,
  };
}

/** Thrown by the parsers of the edge, caught by the service that called them and returned as its value. */
export class InvalidInputError extends Error {
  readonly problem: InvalidInput;
  /** What is wrong besides, where more than the first was looked for. */
  readonly others: readonly InvalidInput[];
  constructor(field: string | null, message: string, others: readonly InvalidInput[] = []) {
    super(message);
    this.problem = invalidInput(field, message);
    this.others = others;
  }
}

/** Everything that parsers find wrong, or what they give. */
export function collected<T>(parsers: readonly (() => T)[]): T[] {
  const faults: InvalidInput[] = [];
  const values: T[] = [];
  for (const parse of parsers) {
    try {
      values.push(parse());
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      faults.push(error.problem, ...error.others);
    }
  }
  const [first, ...others] = faults;
  if (first) throw new InvalidInputError(first.field, first.message, others);
  return values;
}

/** Runs a parser: its result, or the problem that it found. */
export function parsed<T>(parse: () => T): T | InvalidInput {
  try {
    return parse();
  } catch (error) {
    if (error instanceof InvalidInputError) return error.problem;
    throw error;
  }
}

export const isInvalidInput = (value: unknown): value is InvalidInput =>
  typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'InvalidInput';
