import { createHash } from 'node:crypto';
import { isStorable } from '../domain/json.ts';
import { ReadError } from './errors.ts';

/** What a column of a list's order holds: how it is written into a cursor and read back. */
export type KeyType = 'uuid' | 'integer' | 'decimal' | 'time' | 'text';

const version = 1;

const forms: Record<KeyType, (text: string) => boolean> = {
  uuid: (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text),
  integer: (text) => /^-?\d{1,15}$/.test(text),
  decimal: (text) => /^-?\d{1,40}(\.\d{1,40})?$/.test(text),
  // Milliseconds since 1970: nothing listed is older.
  time: (text) => /^\d{1,15}$/.test(text),
  text: isStorable,
};

/** Names what a cursor is of: the list, its order, its filter and whose list it is. Null and absent are the same. */
export function fingerprint(list: string, parent: string | null, filter: unknown): string {
  const text = JSON.stringify([list, parent, filter], (_, value: unknown) =>
    value === null ? undefined : value,
  );
  return createHash('sha256').update(text).digest('base64url').slice(0, 12);
}

/** The place of a row in its list. It needs no row to be there: it says between which keys it is. */
export const encodeCursor = (of: string, key: readonly string[]): string =>
  Buffer.from(JSON.stringify([version, of, ...key])).toString('base64url');

export function decodeCursor(cursor: string, of: string, types: readonly KeyType[], field: string): string[] {
  const [givenVersion, givenOf, ...key] = parseParts(cursor);
  if (givenVersion !== version) {
    throw new ReadError(
      'INVALID_CURSOR',
      `${field} is not a cursor of a list; use one that a page gave.`,
      field,
    );
  }
  const fits = key.length === types.length && types.every((type, i) => isKey(type, key[i]));
  if (givenOf !== of || !fits) {
    throw new ReadError('INVALID_CURSOR', `${field} is a cursor of another list, filter or order.`, field);
  }
  return key as string[];
}

function parseParts(cursor: string): unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return Array.isArray(parts) ? parts : [];
  } catch {
    return [];
  }
}

const isKey = (type: KeyType, value: unknown): boolean => typeof value === 'string' && forms[type](value);
