import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { OpenStreams } from './event-stream.ts';
import { createGraphQLEndpoint, type GraphQLEndpointOptions } from './graphql-endpoint.ts';
import { HttpError } from './http-error.ts';
import { answerSession } from './session.ts';

export interface HttpServerOptions extends Omit<GraphQLEndpointOptions, 'openStreams'> {
  host: string;
  port: number;
  version: string;
  /** Why the server is not ready for work; empty when it is. */
  notReady: () => Promise<string[]>;
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
  const { log } = options;
  const openStreams: OpenStreams = new Set();
  const started = performance.now();
  const answerGraphQL = createGraphQLEndpoint({ ...options, openStreams });

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    switch (pathOf(request)) {
      case '/graphql':
        return answerGraphQL(request, response);
      case '/session':
        return answerSession(request, response, options.credentials);
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
      if (status === 401) response.setHeader('www-authenticate', 'Bearer realm="runplane"');
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

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(body));
}
