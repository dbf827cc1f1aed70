import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GraphQLSchema } from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import type { Authority, Credentials } from '../domain/credential.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { maskError } from '../graphql/errors.ts';
import { authenticate, requireSignedIn } from './authentication.ts';
import { answerAsEventStream, type OpenStreams } from './event-stream.ts';
import { HttpError } from './http-error.ts';
import { operationOf, operationOfUrl, readBody } from './operation-request.ts';

export interface RequestInfo {
  requestId: string;
  /** Makes a signal that aborts when the client leaves before it was answered. Few operations need one. */
  signal: () => AbortSignal;
  /** Where a reconnecting client wants to go on: wins over the subscription's own argument. */
  lastEventId: string | null;
  authority: Authority;
}

export interface GraphQLEndpointOptions {
  schema: GraphQLSchema;
  createContext: (request: RequestInfo) => GraphQLContext;
  openStreams: OpenStreams;
  credentials: Credentials;
  log: { error(fields: object, message: string): void };
}

/** Answers the requests to /graphql: as JSON by yoga, as an event stream by our own. */
export function createGraphQLEndpoint({
  schema,
  createContext,
  openStreams,
  credentials,
  log,
}: GraphQLEndpointOptions): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const yoga = createYoga<{ info: RequestInfo }>({
    schema,
    context: ({ info }) => createContext(info),
    graphqlEndpoint: '/graphql',
    graphiql: false,
    landingPage: false,
    multipart: false,
    cors: false,
    batching: false,
    logging: false,
    plugins: [maskWithRequestId(log)],
    // What fails outside of the execution has no context to take the id from.
    maskedErrors: { maskError: (error) => maskError(error, randomUUID(), log) },
  });

  return async (request, response) => {
    const lastEventId = request.headers['last-event-id'];
    const authority = await authenticate(request, credentials);
    const info: RequestInfo = {
      authority,
      requestId: randomUUID(),
      signal: signalOfLeaving(response),
      lastEventId: typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : null,
    };
    if (!URL.canParse(`http://${request.headers.host ?? 'localhost'}/`)) {
      throw new HttpError(400, 'BAD_REQUEST', 'The Host header names no host.');
    }
    const body = request.method === 'POST' ? await readBody(request) : null;
    // The same faults get the same answers, whatever reads the request then.
    const operation =
      body !== null ? operationOf(body) : request.method === 'GET' ? operationOfUrl(request) : null;
    requireSignedIn(authority, operation?.query ?? null);
    if (acceptsOnlyEventStream(request)) {
      if (!operation)
        throw new HttpError(405, 'METHOD_NOT_ALLOWED', 'Use POST, or GET for queries and subscriptions.');
      await answerAsEventStream(
        request,
        response,
        operation,
        createContext(info),
        { schema, maskError: (error) => maskError(error, info.requestId, log) },
        openStreams,
      );
      return;
    }
    if (body !== null) Object.assign(request, { body });
    await yoga.handle(request, response, { info });
  };
}

/** Masks the errors of a result under the id of its request, which the log has too. */
const maskWithRequestId = (log: GraphQLEndpointOptions['log']): Plugin<GraphQLContext> => ({
  onExecute: ({ args }) => ({
    onExecuteDone: ({ result, setResult }) => {
      if (!('errors' in result) || !result.errors) return;
      const { requestId } = args.contextValue;
      setResult({ ...result, errors: result.errors.map((error) => maskError(error, requestId, log)) });
    },
  }),
});

const signalOfLeaving = (response: ServerResponse) => (): AbortSignal => {
  const left = new AbortController();
  if (response.destroyed) left.abort();
  response.once('close', () => {
    if (!response.writableFinished) left.abort();
  });
  return left.signal;
};

const acceptsOnlyEventStream = (request: IncomingMessage): boolean => {
  const accept = request.headers.accept ?? '';
  return accept.includes('text/event-stream') && !accept.includes('application/json');
};
