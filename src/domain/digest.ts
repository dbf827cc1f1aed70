import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** SHA-256 of the canonical JSON (RFC 8785): equal for equal values, whatever the order of keys. */
export const digest = (value: unknown): Buffer => hash('sha256', canonicalize(value) ?? '', 'buffer');

export const hashKey = (key: string): Buffer => hash('sha256', key, 'buffer');
