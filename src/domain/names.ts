import { InvalidInputError } from './problems.ts';
import { parseName } from './text.ts';

/** Names without duplicates. */
export function parseNames(
  values: readonly string[] | null | undefined,
  field: string,
  max: number,
): string[] {
  if (values == null) return [];
  refuseTooMany(values, field, max);
  const names = values.map((value, i) => parseName(value, `${field}[${i}]`));
  refuseDuplicates(names, field);
  return names;
}

/** Throws with the limit. */
export function refuseTooMany(values: readonly unknown[], field: string, max: number): void {
  if (values.length > max) {
    throw new InvalidInputError(field, `${field} has ${values.length} entries; at most ${max} are allowed.`);
  }
}

/** Throws with the name that is given twice. */
export function refuseDuplicates(names: readonly string[], field: string): void {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw new InvalidInputError(field, `${field} names ${JSON.stringify(twice)} twice.`);
}
