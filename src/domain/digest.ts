import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** SHA-256 of the canonical JSON (RFC 8785): equal for equal values, whatever the order of keys. */
export const digest = (value: unknown): Buffer =>
  createHash('sha256')
    .update(canonicalize(value) ?? '')
    .digest();

export const hashKey = (key: string): Buffer => createHash('sha256').update(key).digest();
