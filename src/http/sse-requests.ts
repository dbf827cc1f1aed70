import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Response as SseResponse } from 'graphql-sse';
import { HttpError } from './http-error.ts';
import type { OperationRequest } from './operation-request.ts';

/** What a request of the protocol is about. */
export interface Call {
  token: string;
  /** Begins its operation; null: it has none. */
  start: (() => Promise<AsyncGenerator<unknown>>) | null;
}

export const acceptsEvents = (request: IncomingMessage): boolean =>
  (request.headers.accept ?? '').includes('text/event-stream');

/** From where the protocol has it: a header, or the URL for who cannot set one. */
export function tokenOf(request: IncomingMessage): string | null {
  const header = request.headers['x-graphql-event-stream-token'];
  if (typeof header === 'string') return header;
  return new URL(request.url ?? '/', 'http://localhost').searchParams.get('token');
}

/** A request as graphql-sse takes it; an operation is handed over as it was read. */
export function toSseRequest(
  request: IncomingMessage,
  context: Call,
  operation: OperationRequest | null = null,
) {
  const { method = 'GET', url = '/' } = request;
  return {
    method: operation ? 'POST' : method,
    url,
    headers: {
      get: (name: string): string | null => {
        if (operation) return name === 'content-type' || name === 'accept' ? 'application/json' : null;
        if (name === 'accept') return acceptsEvents(request) ? 'text/event-stream' : '*/*';
        return null;
      },
    },
    body: operation && {
      query: operation.query,
      variables: operation.variables ?? undefined,
      operationName: operation.operationName ?? undefined,
      extensions: { ...operation.extensions, operationId: operationIdOf(operation) },
    },
    raw: undefined,
    context,
  };
}

/** Empty: it has none. */
export function operationIdOf({ extensions }: OperationRequest): string {
  const id = extensions?.operationId ?? '';
  if (typeof id === 'string' || typeof id === 'number') return String(id);
  throw new HttpError(400, 'BAD_REQUEST', 'extensions.operationId must be a string.');
}

/** What the server itself asks for: that a stream is opened, or an operation of it forgotten. */
export const ownSseRequest = (token: string, method: 'GET' | 'DELETE', operationId = '') => ({
  method,
  url: `/?operationId=${encodeURIComponent(operationId)}`,
  headers: {
    get: (name: string): string | null =>
      name === 'accept' && method === 'GET' ? 'text/event-stream' : null,
  },
  body: null,
  raw: undefined,
  context: { token, start: null },
});

const codes = {
  400: 'BAD_REQUEST',
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_ALLOWED',
  406: 'NOT_ACCEPTABLE',
  409: 'STREAM_CONFLICT',
} as const;

/** Refusals of the protocol get the form and the codes of all others. */
export function send(response: ServerResponse, [body, init]: SseResponse): void {
  if (init.status >= 400) {
    const said = typeof body === 'string' ? /"message":"([^"]*)"/.exec(body)?.[1] : undefined;
    const code = codes[init.status as keyof typeof codes] ?? 'BAD_REQUEST';
    throw new HttpError(init.status, code, said ?? init.statusText, {
      headers: init.headers?.allow ? { allow: init.headers.allow } : {},
    });
  }
  response.writeHead(init.status, init.headers);
  response.end(typeof body === 'string' ? body : undefined);
}
