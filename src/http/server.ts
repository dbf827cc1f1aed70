import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type GraphQLSchema, Kind, OperationTypeNode, parse } from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import { limits } from '../domain/limits.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { maskError } from '../graphql/errors.ts';
import { HttpError, readJsonBody } from './body.ts';
import { answerAsEventStream, type OpenStreams, type OperationRequest } from './event-stream.ts';

export interface RequestInfo {
  requestId: string;
  /** Makes a signal that aborts when the client leaves before it was answered. Few operations need one. */
  signal: () => AbortSignal;
  /** Where a reconnecting client wants to go on: wins over the subscription's own argument. */
  lastEventId: string | null;
}

export interface HttpServerOptions {
  host: string;
  port: number;
  version: string;
  schema: GraphQLSchema;
  createContext: (request: RequestInfo) => GraphQLContext;
  /** Why the server is not ready for work; empty when it is. */
  notReady: () => Promise<string[]>;
  log: { error(fields: object, message: string): void };
}

export interface HttpServer {
  /** Where it listens: http://host:port */
  url: string;
  /** Completes streams, answers what is under way, accepts nothing new. */
  stop(): Promise<void>;
}

const stopMs = 5_000;

/** The HTTP side: GraphQL and its event streams on /graphql, health on /healthz and /readyz. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { schema, createContext, log } = options;
  const openStreams: OpenStreams = new Set();
  const started = performance.now();
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

  const answerGraphQL = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const lastEventId = request.headers['last-event-id'];
    const info = {
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

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    switch (pathOf(request)) {
      case '/graphql':
        return answerGraphQL(request, response);
      case '/healthz':
        return sendJson(response, 200, {
          status: 'ok',
          version: options.version,
          uptimeSeconds: Math.floor((performance.now() - started) / 1000),
        });
      case '/readyz': {
        const reasons = await options.notReady();
        return sendJson(response, reasons.length === 0 ? 200 : 503, { ready: reasons.length === 0, reasons });
      }
      default:
        return sendJson(response, 404, {
          errors: [
            {
              message: 'There is nothing here. GraphQL is at /graphql; examples/curl.md shows how to use it.',
              extensions: { code: 'NOT_FOUND' },
            },
          ],
        });
    }
  };

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      if (!(error instanceof HttpError)) log.error({ error: String(error) }, 'a request failed');
      if (response.headersSent) {
        response.destroy();
        return;
      }
      const { status, code, message } =
        error instanceof HttpError
          ? error
          : new HttpError(500, 'INTERNAL_SERVER_ERROR', 'Something went wrong here.');
      // What was not read of the body cannot be told from a next request.
      if (!request.complete) response.setHeader('connection', 'close');
      sendJson(response, status, { errors: [{ message, extensions: { code } }] });
    });
  });
  server.keepAliveTimeout = 65_000;
  const url = await listen(server, options);

  return {
    url,
    stop: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const stop of openStreams) stop();
      server.closeIdleConnections();
      const force = setTimeout(() => server.closeAllConnections(), stopMs);
      await closed;
      clearTimeout(force);
    },
  };
}

/** Masks the errors of a result under the id of its request, which the log has too. */
const maskWithRequestId = (log: HttpServerOptions['log']): Plugin<GraphQLContext> => ({
  onExecute: ({ args }) => ({
    onExecuteDone: ({ result, setResult }) => {
      if (!('errors' in result) || !result.errors) return;
      const { requestId } = args.contextValue;
      setResult({ ...result, errors: result.errors.map((error) => maskError(error, requestId, log)) });
    },
  }),
});

async function listen(server: Server, { host, port }: { host: string; port: number }): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const address = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}

const signalOfLeaving = (response: ServerResponse) => (): AbortSignal => {
  const left = new AbortController();
  if (response.destroyed) left.abort();
  response.once('close', () => {
    if (!response.writableFinished) left.abort();
  });
  return left.signal;
};

const pathOf = (request: IncomingMessage): string => (request.url ?? '/').split('?', 1)[0] ?? '/';

const acceptsOnlyEventStream = (request: IncomingMessage): boolean => {
  const accept = request.headers.accept ?? '';
  return accept.includes('text/event-stream') && !accept.includes('application/json');
};

/** Reads the body; past 1 MiB it may only report results. */
async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const { body, bytes } = await readJsonBody(request);
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new HttpError(
      400,
      'BAD_REQUEST',
      'The request body must be one JSON object; batches are not served.',
    );
  }
  const operation = body as Record<string, unknown>;
  if (bytes > limits.bodyBytes && !onlyReportsResults(operation.query)) {
    throw new HttpError(
      413,
      'BODY_TOO_LARGE',
      `The request body is ${bytes} bytes; more than ${limits.bodyBytes} are only for reportResult and reportResults.`,
    );
  }
  return operation;
}

function onlyReportsResults(query: unknown): boolean {
  if (typeof query !== 'string') return false;
  try {
    const { definitions } = parse(query, { maxLexicalTokens: 10_000 });
    return definitions.every(
      (definition) =>
        definition.kind === Kind.FRAGMENT_DEFINITION ||
        (definition.kind === Kind.OPERATION_DEFINITION &&
          definition.selectionSet.selections.every(
            (field) =>
              field.kind === Kind.FIELD && ['reportResult', 'reportResults'].includes(field.name.value),
          )),
    );
  } catch {
    return false;
  }
}

function operationOf(body: Record<string, unknown>): OperationRequest {
  const { query, operationName = null, variables = null } = body;
  if (typeof query !== 'string') throw new HttpError(400, 'BAD_REQUEST', 'query must be a string.');
  if (operationName !== null && typeof operationName !== 'string')
    throw new HttpError(400, 'BAD_REQUEST', 'operationName must be a string.');
  if (typeof variables !== 'object' || Array.isArray(variables))
    throw new HttpError(400, 'BAD_REQUEST', 'variables must be an object.');
  return { query, operationName, variables: variables as Record<string, unknown> | null };
}

function operationOfUrl(request: IncomingMessage): OperationRequest {
  if (request.method !== 'GET')
    throw new HttpError(405, 'METHOD_NOT_ALLOWED', 'Use POST, or GET for queries and subscriptions.');
  const parameters = new URL(request.url ?? '/', 'http://localhost').searchParams;
  const variables = parameters.get('variables');
  try {
    const operation = operationOf({
      query: parameters.get('query'),
      operationName: parameters.get('operationName'),
      variables: variables === null ? null : JSON.parse(variables),
    });
    if (
      parse(operation.query).definitions.some(
        (d) => d.kind === Kind.OPERATION_DEFINITION && d.operation === OperationTypeNode.MUTATION,
      )
    ) {
      throw new HttpError(405, 'METHOD_NOT_ALLOWED', 'Send mutations by POST.');
    }
    return operation;
  } catch (error) {
    if (error instanceof HttpError) throw error;
    throw new HttpError(400, 'BAD_REQUEST', 'query or variables of the URL cannot be read.');
  }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(body));
}
