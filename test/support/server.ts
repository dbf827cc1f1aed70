import type { GraphQLSchema } from 'graphql';
import { readConfig } from '../../src/config.ts';
import type { Credentials } from '../../src/domain/credential.ts';
import { buildSchema } from '../../src/graphql/schema.ts';
import { type HttpAccess, httpAccess } from '../../src/http/http-access.ts';
import { type HttpServer, startHttpServer } from '../../src/http/server.ts';
import { createLoaders } from '../../src/read/loaders.ts';
import { createRead } from '../../src/read/read.ts';
import { ControlPlane, type ControlPlaneOptions, quiet } from './control-plane.ts';

const schema = buildSchema();

export interface TestServerOptions extends ControlPlaneOptions {
  access?: Partial<HttpAccess>;
  /** Default: authentication is off. */
  credentials?: Credentials;
  log?: Pick<typeof quiet, 'error'>;
  /** Default: that of the product. */
  schema?: GraphQLSchema;
}

/** As an installation has it that sets nothing. */
const shipped = httpAccess(readConfig({}).access, null);

export interface TestServer {
  plane: ControlPlane;
  http: HttpServer;
  url: string;
  /** Posts an operation; the parsed answer. */
  post(
    query: string,
    variables?: object,
  ): Promise<{
    data?: Record<string, never>;
    errors?: { message: string; locations?: object[]; extensions: Record<string, unknown> }[];
  }>;
  stop(): Promise<void>;
}

/** A real HTTP server on a free port, over the services of a database of its own. */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const plane = await ControlPlane.start(options);
  const read = createRead(plane.database.db);
  const access = { ...shipped, ...options.access };
  const credentials = options.credentials ?? plane.services.credentials;
  const facts = {
    version: '0.0.0-test',
    authenticationOff: credentials.none.viewer.signedIn,
    requestsPerMinute: access.requestsPerMinute,
    streamsPerToken: access.streamsPerToken,
  };
  const http = await startHttpServer({
    host: '127.0.0.1',
    port: 0,
    version: '0.0.0-test',
    schema: options.schema ?? schema,
    log: options.log ?? quiet,
    access,
    credentials,
    readiness: () => Promise.resolve({ ready: true, reasons: [] }),
    horizonStall: () => plane.services.horizon.stall,
    createContext: (request) => ({
      services: { ...plane.services, read, server: facts },
      ...request,
      viewer: request.authority.viewer,
      loaders: createLoaders(read),
    }),
  });
  const url = `${http.url}/graphql`;
  return {
    plane,
    http,
    url,
    post: async (query, variables = {}) => {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query, variables }),
      });
      return (await response.json()) as Awaited<ReturnType<TestServer['post']>>;
    },
    stop: async () => {
      await http.stop();
      await plane.stop();
    },
  };
}
