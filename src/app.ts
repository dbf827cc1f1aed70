import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { type Config, ConfigurationError } from './config.ts';
import { type EmbeddedPostgres, joinEmbeddedPostgres } from './db/embedded-postgres.ts';
import { migrate } from './db/migrate.ts';
import { Database } from './db/pool.ts';
import type { InlineHandler } from './dispatch/handlers.ts';
import type { GraphQLContext } from './graphql/context.ts';
import { buildSchema } from './graphql/schema.ts';
import { httpAccess } from './http/http-access.ts';
import { type HttpServer, startHttpServer } from './http/server.ts';
import { readTrustedDocuments, type TrustedDocuments } from './http/trusted-documents.ts';
import type { Ingest } from './ingest/ingest.ts';
import { createKnowledgeHandlers, installKnowledge } from './knowledge/index.ts';
import { seedRegistry } from './operator/seed-registry.ts';
import { createLoaders } from './read/loaders.ts';
import { createRead } from './read/read.ts';
import { readinessOf } from './readiness.ts';
import { type Log, type Services, startServices } from './services.ts';
import { startTelemetry } from './telemetry/telemetry.ts';

export interface App {
  /** Null when the api role runs elsewhere. */
  url: string | null;
  services: Services;
  /** Every pool with the slots that each replica has for it. */
  pools: { name: string; slots: number }[];
  /** Drains and stops everything, the embedded Postgres last. Calling it twice is fine. */
  stop(): Promise<void>;
}

export interface AppOptions {
  config: Config;
  log: Log & { debug?(fields: object, message: string): void };
  onProgress: (message: string) => void;
  /** Handlers of inline agents, by name, beside the built-in ones. */
  handlers?: ReadonlyMap<string, InlineHandler>;
}

const version: string = (
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
).version;

/** Starts a server: database, migrations, services, HTTP, in this order; a failure stops what had started. */
export async function startApp(options: AppOptions): Promise<App> {
  const started: (() => Promise<void>)[] = [];
  const stop = once(async () => {
    // What fails to stop keeps nothing else from stopping.
    const faults: unknown[] = [];
    for (const undo of started.reverse()) await undo().catch((fault: unknown) => faults.push(fault));
    if (faults.length > 0) throw faults[0];
  });
  try {
    return await start(options, started, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function start(
  { config, log, onProgress, handlers = new Map() }: AppOptions,
  started: (() => Promise<void>)[],
  stop: () => Promise<void>,
): Promise<App> {
  const trustedDocuments = trustedDocumentsOf(config);
  let embedded: EmbeddedPostgres | null = null;
  if (config.database.url === null) {
    embedded = await joinEmbeddedPostgres({ dataDir: config.dataDir, onProgress });
    started.push(() => (embedded as EmbeddedPostgres).leave());
  }
  const connectionString = config.database.url ?? embedded?.url ?? '';
  const directUrl = config.database.listenUrl ?? connectionString;
  onProgress('applying migrations');
  const stored = await migrate(directUrl);
  const installation =
    config.secretKey === null
      ? stored
      : { ...stored, secretKey: createHash('sha256').update(config.secretKey).digest() };
  const database = {
    connectionString,
    timeouts: config.database.timeouts,
    ownSessions: config.database.listenUrl === null,
  };
  const scheduler = config.roles.includes('scheduler');
  const allHandlers = new Map([...createKnowledgeHandlers(() => services.db), ...handlers]);

  const telemetry = await startTelemetry({
    config: config.telemetry,
    version,
    db: () => services.db,
    log: {
      warn: (fields, message) => log.warn(fields, message),
      debug: ['debug', 'trace'].includes(config.logLevel)
        ? (fields, message) => log.debug?.(fields, message)
        : null,
    },
  });
  // Started before the work, and stopped after it.
  started.push(() => telemetry.stop());
  const services: Services = await startServices({
    database: { ...database, maxConnections: config.database.connections },
    listenUrl: directUrl,
    installation,
    scheduler,
    cancelGraceSeconds: config.cancelGraceSeconds,
    housekeeping: config.housekeeping.on ? config.housekeeping : null,
    handlers: allHandlers,
    authentication: config.authentication,
    serverName: `${hostname()}/${process.pid}`,
    log,
    observer: telemetry.observer,
  });
  started.push(() => services.stop());
  await seedRegistry(services.db);
  await installKnowledge(services);

  let ingest: Ingest | null = null;
  if (config.nats && config.roles.includes('ingest')) {
    // Whoever has no broker does not load its client.
    const { startIngest } = await import('./ingest/ingest.ts');
    const running = startIngest(config.nats, { db: services.db, intake: services.intake, log });
    ingest = running;
    started.push(() => running.stop());
  }

  // Dashboards read through a small pool of their own: a slow question never takes a connection from the work.
  const readDb = new Database({
    ...database,
    maxConnections: 3,
    applicationName: 'runplane-read',
    onError: (error) => log.warn({ error: error.message }, 'a database connection was lost'),
  });
  started.push(() => readDb.close());
  const read = createRead(readDb);

  let http: HttpServer | null = null;
  if (config.roles.includes('api')) {
    const { requestsPerMinute, streamsPerToken } = config.access;
    const authenticationOff = config.authentication === null;
    const facts = { version, authenticationOff, requestsPerMinute, streamsPerToken };
    http = await startHttpServer({
      host: config.host,
      port: config.port,
      version,
      schema: buildSchema(),
      log,
      readiness: () => readinessOf({ ...services, ingest }, log),
      horizonStall: () => services.horizon.stall,
      credentials: services.credentials,
      access: httpAccess(config.access, trustedDocuments),
      createContext: ({ authority, ...request }): GraphQLContext => ({
        services: { ...services, read, server: facts },
        ...request,
        authority,
        viewer: authority.viewer,
        loaders: createLoaders(read),
      }),
    });
    const server = http;
    // Work stops first, while clients are still answered; then the answers.
    started.push(async () => {
      await services.drain();
      await server.stop();
    });
  }
  const { rows: pools } = await services.db.query<{ name: string; slots: number }>({
    text: 'select name, slots_per_replica as slots from runplane.pools order by name',
  });
  return { url: http?.url ?? null, services, pools, stop };
}

function trustedDocumentsOf({ access }: Config): TrustedDocuments | null {
  if (access.trustedDocuments === null) return null;
  try {
    return readTrustedDocuments(access.trustedDocuments);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError([`RUNPLANE_TRUSTED_DOCUMENTS cannot be used: ${why}.`]);
  }
}

function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  return () => (running ??= work());
}
