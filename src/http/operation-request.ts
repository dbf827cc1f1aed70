import type { IncomingMessage } from 'node:http';
import { limits } from '../domain/limits.ts';
import { type BodyRoom, readJsonBody } from './body.ts';
import { HttpError } from './http-error.ts';
import { type TrustedDocuments, trustedText } from './trusted-documents.ts';

/** What a client asks to have executed. */
export interface OperationRequest {
  query: string;
  operationName: string | null;
  variables: Record<string, unknown> | null;
  extensions: Record<string, unknown> | null;
  /** Of the body; 0 where the URL says it all. */
  bytes: number;
}

/** Reads the operation of a POST or a GET. With a list of trusted documents its text is one of them. */
export async function readOperation(
  request: IncomingMessage,
  trusted: TrustedDocuments | null,
  room: BodyRoom | null,
): Promise<OperationRequest> {
  const { parameters, bytes } = await readParameters(request, room);
  const { operationName = null, variables = null, extensions = null } = parameters;
  if (operationName !== null && typeof operationName !== 'string')
    throw bad('operationName must be a string.');
  if (!isObjectOrNull(variables)) throw bad('variables must be an object.');
  if (!isObjectOrNull(extensions)) throw bad('extensions must be an object.');
  const query = textOf(parameters, extensions, trusted);
  return { query, operationName, variables, extensions, bytes };
}

function textOf(
  { query = null, documentId = null }: Record<string, unknown>,
  extensions: Record<string, unknown> | null,
  trusted: TrustedDocuments | null,
): string {
  if (query !== null && typeof query !== 'string') throw bad('query must be a string.');
  if (!trusted) {
    if (query === null) throw bad('query must be a string.');
    return query;
  }
  // The forms in which clients send the hash instead of the text.
  const persisted = extensions?.persistedQuery;
  const hash =
    documentId ?? (isObjectOrNull(persisted) && persisted !== null ? (persisted.sha256Hash ?? null) : null);
  if (hash !== null && typeof hash !== 'string') throw bad('documentId must be a string.');
  return trustedText(trusted, hash, query);
}

async function readParameters(
  request: IncomingMessage,
  room: BodyRoom | null,
): Promise<{ parameters: Record<string, unknown>; bytes: number }> {
  switch (request.method) {
    case 'POST': {
      const { body, bytes } = await readJsonBody(request, room);
      if (!isObjectOrNull(body) || body === null) {
        throw bad('The request body must be one JSON object; batches are not served.');
      }
      return { parameters: body, bytes };
    }
    case 'GET':
      return { parameters: parametersOfUrl(request), bytes: 0 };
    default:
      throw new HttpError(405, 'METHOD_NOT_ALLOWED', 'Use POST, or GET for queries and subscriptions.', {
        headers: { allow: 'GET, POST' },
      });
  }
}

function parametersOfUrl(request: IncomingMessage): Record<string, unknown> {
  const given = new URL(request.url ?? '/', 'http://localhost').searchParams;
  const json = (name: string): unknown => {
    const text = given.get(name);
    try {
      return text === null || text === '' ? null : JSON.parse(text);
    } catch {
      throw bad(`${name} of the URL is not valid JSON.`);
    }
  };
  return {
    query: given.get('query'),
    documentId: given.get('documentId'),
    operationName: given.get('operationName') || null,
    variables: json('variables'),
    extensions: json('extensions'),
  };
}

const isObjectOrNull = (value: unknown): value is Record<string, unknown> | null =>
  typeof value === 'object' && !Array.isArray(value);

const bad = (message: string): HttpError => new HttpError(400, 'BAD_REQUEST', message);

/** Refuses a body past 1 MiB that does not only report results. */
export function checkBodySize(bytes: number, onlyReportsResults: () => boolean): void {
  if (bytes <= limits.bodyBytes || onlyReportsResults()) return;
  throw new HttpError(
    413,
    'BODY_TOO_LARGE',
    `The request body is ${bytes} bytes; more than ${limits.bodyBytes} are only for reportResult and reportResults.`,
    { extensions: { limit: limits.bodyBytes, actual: bytes } },
  );
}
