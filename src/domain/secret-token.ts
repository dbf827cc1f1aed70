import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { fromPublicId, type IdPrefix, toPublicId } from './ids.ts';

/** Begins an API token: so that people and scanners of secrets know it when they see it. */
export const apiTokenPrefix = 'rp';
/** Begins the cookie of a session. */
export const sessionPrefix = 'rps';

const secretBytes = 32;

/** A random secret that carries its id, so that it is found without being searched for: prefix, id, secret. */
export interface SecretToken {
  text: string;
  secret: string;
  /** What is stored of it: it gives nothing away, because there is nothing to guess in 32 random bytes. */
  secretHash: Buffer;
}

export function newSecretToken(prefix: string, uuid: string): SecretToken {
  const secret = randomBytes(secretBytes).toString('base64url');
  return { text: `${prefix}_${idText(uuid)}_${secret}`, secret, secretHash: hashSecret(secret) };
}

/** The id and the secret in a token; null when the text is none of that kind. */
export function parseSecretToken(prefix: string, text: string): { uuid: string; secret: string } | null {
  const [, kind, id = '', secret = ''] = /^(\w+?)_([0-9a-z]{26})_([\w-]{43})$/.exec(text) ?? [];
  if (kind !== prefix) return null;
  const uuid = fromPublicId(anyKind, `${anyKind}_${id}`);
  return uuid === null ? null : { uuid, secret };
}

export const hashSecret = (secret: string): Buffer => hash('sha256', secret, 'buffer');

/** Whether a secret is the one whose hash is stored, in a time that tells nothing of it. */
export const isSecret = (secret: string, stored: Buffer): boolean =>
  timingSafeEqual(hashSecret(secret), stored);

// The id is written as in public ids, without their kind.
const anyKind: IdPrefix = 'tok';
const idText = (uuid: string): string => toPublicId(anyKind, uuid).slice(anyKind.length + 1);
