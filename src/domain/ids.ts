import { TypeID } from 'typeid-js';
import { uuidv7 } from 'uuidv7';

/** Kinds of objects, as the prefix of their public ids. */
export type IdPrefix =
  | 'run'
  | 'task'
  | 'att'
  | 'evt'
  | 'job'
  | 'agent'
  | 'thr'
  | 'queue'
  | 'pool'
  | 'route'
  | 'dlq'
  | 'asset'
  | 'mat'
  | 'tok'
  | 'audit'
  | 'wrk'
  | 'chg'
  | 'aev'
  | 'inc';

/** A new UUIDv7 in its text form, as stored. */
export const newUuid = (): string => uuidv7();

/** Of no object; comes before all of them. */
export const nilUuid = '00000000-0000-0000-0000-000000000000';

const base32 = '0123456789abcdefghjkmnpqrstvwxyz';
/** The two letters of each ten bits. */
const pairs = Array.from({ length: 1024 }, (_, bits) => `${base32[bits >> 5]}${base32[bits & 31]}`);

/**
 * The public id of a stored UUID: a TypeID such as run_01j9…, sortable by time. Every task that is handed out needs
 * several, so this does without the checks of the library, which reads them.
 */
export function toPublicId(prefix: IdPrefix, uuid: string): string {
  const hex = uuid.replaceAll('-', '');
  // 128 bits are 26 letters of 5 bits: 10 bits for the first two letters, of which 8 are there, and 40 bits for each eight.
  let text = `${prefix}_${pairs[Number.parseInt(hex.slice(0, 2), 16)]}`;
  for (let at = 2; at < 32; at += 5) {
    const bits = Number.parseInt(hex.slice(at, at + 5), 16);
    text += `${pairs[bits >> 10]}${pairs[bits & 1023]}`;
  }
  return text;
}

/** The UUID behind a public id; null when the text is no id of that kind. */
export function fromPublicId(prefix: IdPrefix, id: string): string | null {
  try {
    return TypeID.fromString(id, prefix).toUUID();
  } catch {
    return null;
  }
}

/** The kind and UUID of any public id; null when the text is none. */
export function parsePublicId(id: string): { prefix: IdPrefix; uuid: string } | null {
  const prefix = id.slice(0, Math.max(0, id.lastIndexOf('_'))) as IdPrefix;
  const uuid = fromPublicId(prefix, id);
  return uuid === null ? null : { prefix, uuid };
}

const sixLetters = (bits: number): string =>
  `${pairs[bits >> 20]}${pairs[(bits >> 10) & 1023]}${pairs[bits & 1023]}`;

/** The public id of an entry of a log: as of a UUID that is its number, which is below 2^53. */
export function toPublicLogId(prefix: IdPrefix, number: number): string {
  const high = Math.floor(number / 2 ** 30);
  return `${prefix}_00000000000000${sixLetters(high)}${sixLetters(number - high * 2 ** 30)}`;
}
