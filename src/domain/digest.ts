import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** SHA-256 of the canonical JSON (RFC 8785): equal for equal values, whatever the order of keys. */
export const digest = (value: unknown): Buffer => hash('sha256', canonicalize(value) ?? '', 'buffer');

/**
 * The same, in hexadecimal, for an object that is always written with its fields in one order, which are then not sorted
 * each time; with how many characters it is of.
 */
export function digestFields(fields: Readonly<Record<string, unknown>>): { digest: string; size: number } {
  let text = '';
  for (const name in fields)
    text += `${name}:${isPlain(fields[name]) ? JSON.stringify(fields[name]) : canonicalize(fields[name])},`;
  return { digest: hash('sha256', text, 'hex'), size: text.length };
}

const isPlain = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || (Array.isArray(value) && value.length === 0);

/** SHA-256 of a key: what is stored of it has one size. */
export const hashKey = (key: string): Buffer => hash('sha256', key, 'buffer');
