import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HorizonStall } from '../changelog/horizon-watch.ts';
import type { Credentials } from '../domain/credential.ts';
import { failureWithStack } from '../domain/failure.ts';
import { errors } from '../errors.ts';
import type { Readiness } from '../readiness.ts';
import type { AdmissionOptions } from './admission.ts';
import { BodyRoom } from './body.ts';
import type { OpenStreams } from './event-stream.ts';
import { createGraphiQL } from './graphiql.ts';
import { createGraphQLEndpoint, type GraphQLEndpointOptions } from './graphql-endpoint.ts';
import { answerHealth, type Health } from './health.ts';
import { HttpError } from './http-error.ts';
import { requestIdOf } from './request-id.ts';
import { RequestRate } from './request-rate.ts';
import { answerSession } from './session.ts';

export interface HttpServerOptions extends Omit<GraphQLEndpointOptions, 'openStreams' | 'admission'> {
  credentials: Credentials;
  host: string;
  port: number;
  version: string;
  readiness: () => Promise<Readiness>;
  /** That cursors of streams do not move on; null when they do. */
  horizonStall: () => HorizonStall | null;
}

export interface HttpServer {
  /** Where it listens: http://host:port */
  url: string;
  /** How much is kept for clients that are there, by what it is. */
  kept(): Record<string, number>;
  /** Completes streams, answers what is under way, accepts nothing new. */
  stop(): Promise<void>;
}

const stopMs = 5_000;

/** The HTTP side: GraphQL and its event streams on /graphql and /graphql/stream, health on /healthz and /readyz. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { log } = options;
  const openStreams: OpenStreams = new Set();
  const started = performance.now();
  const { access, credentials } = options;
  const admission: AdmissionOptions = {
    credentials,
    // Without authentication everybody is signed in, by being able to reach the server.
    origins: { origins: access.origins, authenticationOff: credentials.none.viewer.signedIn },
    rate: new RequestRate(access.requestsPerMinute),
    strangersBodies: new BodyRoom(),
  };
  const graphql = createGraphQLEndpoint({ ...options, admission, openStreams });

  const graphiql = createGraphiQL(admission);

  const health = (): Health => ({
    version: options.version,
    uptimeSeconds: Math.floor((performance.now() - started) / 1000),
    horizonStall: options.horizonStall(),
  });

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    switch (pathOf(request)) {
      case '/graphql':
        return graphql.answer(request, response);
      case '/graphql/stream':
        return graphql.answerStream(request, response);
      case '/graphiql':
        return graphiql(request, response);
      case '/session':
        return answerSession(request, response, admission);
      case '/healthz':
        return sendJson(response, 200, await answerHealth(request, health(), admission));
      case '/readyz': {
        const readiness = await options.readiness();
        return sendJson(response, readiness.ready ? 200 : 503, readiness);
      }
      default:
        return sendJson(response, 404, {
          errors: [
            {
              message: 'There is nothing here. GraphQL is at /graphql; docs/api.md shows how to use it.',
              extensions: { code: 'NOT_FOUND' },
            },
          ],
        });
    }
  };

  let stopping = false;
  const server = createServer((request, response) => {
    // A client keeps its connection for a next request; one that was answered is over when the server is.
    response.once('close', () => setImmediate(() => stopping && server.closeIdleConnections()));
    answer(request, response).catch((error: unknown) => {
      // Its client left before it had said what it wants: nobody is there to be answered, and nothing failed.
      if (error === request.errored) return;
      const refusal = error instanceof HttpError ? error : failed(error, requestIdOf(response), log);
      if (response.headersSent) {
        response.destroy();
        return;
      }
      // What was not read of the body cannot be told from a next request.
      if (!request.complete) response.setHeader('connection', 'close');
      sendRefusal(response, refusal);
    });
  });
  server.keepAliveTimeout = 65_000;
  // Who stops to send or to read holds memory. Waits are shorter, and streams say something more often.
  server.timeout = access.silentSeconds * 1000;
  const url = await listen(server, options);

  return {
    url,
    kept: () => graphql.kept(),
    stop: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      stopping = true;
      for (const stop of openStreams) stop();
      server.closeIdleConnections();
      const force = setTimeout(() => server.closeAllConnections(), stopMs);
      await closed;
      clearTimeout(force);
    },
  };
}

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

const pathOf = (request: IncomingMessage): string => (request.url ?? '/').split('?', 1)[0] ?? '/';

/** Of a failure that nothing expected, clients get the number under which the log has it. */
function failed(error: unknown, requestId: string, log: HttpServerOptions['log']): HttpError {
  log.error({ requestId, error: failureWithStack(error) }, 'a request failed');
  return new HttpError(500, 'INTERNAL_SERVER_ERROR', errors.INTERNAL_SERVER_ERROR.message, {
    extensions: { requestId },
  });
}

function sendRefusal(response: ServerResponse, { status, code, message, details }: HttpError): void {
  if (status === 401) response.setHeader('www-authenticate', 'Bearer realm="runplane"');
  const { extensions, headers, retryAfterSeconds } = details;
  if (retryAfterSeconds !== undefined) {
    response.setHeader('retry-after', String(Math.max(1, Math.ceil(retryAfterSeconds))));
  }
  for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value);
  sendJson(response, status, {
    errors: details.errors ?? [{ message, extensions: { code, ...extensions } }],
  });
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(body));
}
