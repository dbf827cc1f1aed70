import { InvalidInputError } from './problems.ts';

/** An integer in a range; throws with the range. */
export function parseInteger(value: number, field: string, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new InvalidInputError(field, `${field} must be an integer from ${min} to ${max}.`);
  }
  return value;
}

/** The same; absent is null. */
export const parseOptionalInteger = (
  value: number | null | undefined,
  field: string,
  min: number,
  max: number,
): number | null => (value == null ? null : parseInteger(value, field, min, max));

/** A number in a range; throws with the range. */
export function parseNumber(value: number, field: string, min: number, max: number): number {
  if (!(value >= min && value <= max))
    throw new InvalidInputError(field, `${field} must be a number from ${min} to ${max}.`);
  return value;
}

/** An amount of money as exact decimal text, in the spelling in which the database gives it back; absent is null. */
export function parseDecimal(value: string | null | undefined, field: string): string | null {
  if (value == null) return null;
  const match = /^(\d{1,18})(?:\.(\d{1,12}))?$/.exec(value);
  if (!match) {
    throw new InvalidInputError(
      field,
      `${field} must be a decimal of at least 0 with at most 18 digits before and 12 after the point.`,
    );
  }
  const [, whole = '', decimals = ''] = match;
  const fraction = decimals.replace(/0+$/, '');
  return whole.replace(/^0+(?=\d)/, '') + (fraction && `.${fraction}`);
}

/** A time in the range that is stored; absent is null. */
export function parseTime(at: Date | null | undefined, field: string): Date | null {
  if (!at) return null;
  const year = at.getUTCFullYear();
  if (!(year >= 1970 && year <= 9999))
    throw new InvalidInputError(field, `${field} must be a time in the years 1970 to 9999.`);
  return at;
}
