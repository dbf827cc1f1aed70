import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { HttpError } from './http-error.ts';

/** The documents that may be executed, by the SHA-256 of their text in hexadecimal. */
export type TrustedDocuments = ReadonlyMap<string, string>;

export const documentHash = (document: string): string => createHash('sha256').update(document).digest('hex');

/** Reads a manifest: one JSON object of hashes and documents. Throws where a hash is not that of its document. */
export function readTrustedDocuments(path: string): TrustedDocuments {
  const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
  if (typeof manifest !== 'object' || manifest === null || Array.isArray(manifest)) {
    throw new Error('it must be one JSON object of hashes and documents');
  }
  return new Map(
    Object.entries(manifest).map(([key, document]: [string, unknown]) => {
      const hash = withoutAlgorithm(key);
      if (typeof document !== 'string' || documentHash(document) !== hash) {
        throw new Error(`${key} is not the SHA-256 of its document`);
      }
      return [hash, document];
    }),
  );
}

/** The text to execute: what the hash stands for, or a text that is listed itself. */
export function trustedText(trusted: TrustedDocuments, hash: string | null, query: string | null): string {
  const wanted = hash === null ? query !== null && documentHash(query) : withoutAlgorithm(hash);
  const document = wanted ? trusted.get(wanted) : undefined;
  if (document !== undefined && (query === null || query === document)) return document;
  throw new HttpError(
    403,
    'DOCUMENT_NOT_TRUSTED',
    'This server executes only the documents of its list: send documentId, the SHA-256 of one of them.',
  );
}

const withoutAlgorithm = (hash: string): string => hash.replace(/^sha256:/, '').toLowerCase();
