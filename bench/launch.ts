import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { createSchema, createYoga } from 'graphql-yoga';
import pg from 'pg';
import { startApp } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import {
  answer,
  type Comparison,
  compareAll,
  measureOptions,
  type Place,
  rounds,
} from './support/compare.ts';
import { operation } from './support/operations.ts';
import { loadAutocannon, loadGraphileWorker, silentLogger } from './support/peers.ts';
import { launch, prepareProduct, startProduct } from './support/product.ts';
import { createDatabase, onDatabase } from './support/server.ts';

/** How fast launches are accepted: singly, over HTTP or in process, or in batches by one caller in process. */
interface LaunchOptions extends Place {
  by: 'http' | 'yoga' | 'inProcess' | 'graphile';
  connections: number;
  /** Launches in each call. */
  batch: number;
  seconds: number;
}

const config = { document: 's3://bucket/some/key.pdf', page: 1 };
const quiet = {
  info: () => {},
  warn: () => {},
  error: (fields: object, text: string) => console.error(text, fields),
};

/** Requests a second over HTTP, each one launch. */
async function load(url: string, query: string, { connections, seconds }: LaunchOptions): Promise<number> {
  const run = (duration: number) =>
    loadAutocannon()({
      url,
      connections,
      duration,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables: { config } }),
    });
  await run(1);
  const { requests, errors, non2xx } = await run(seconds);
  if (errors + non2xx > 0) throw new Error(`${errors} errors, ${non2xx} refusals`);
  return requests.average;
}

async function measureHttp(url: string, options: LaunchOptions): Promise<number> {
  await prepareProduct(url, { slots: null, throttled: false });
  // Launches only: what executes them would share the processor with what is measured.
  const settings = { RUNPLANE_PORT: '0', RUNPLANE_ROLES: 'api', DATABASE_URL: url, LOG_LEVEL: 'error' };
  const app = await startApp({ config: readConfig(settings), log: quiet, onProgress: () => {} });
  const perSecond = await load(`${app.url}/graphql`, operation('BenchLaunch'), options);
  await app.stop();
  return perSecond;
}

/** The least that a GraphQL server can do for a launch: one INSERT. */
async function measureYoga(url: string, options: LaunchOptions): Promise<number> {
  await onDatabase(url, [
    'create table launched (id bigint generated always as identity primary key, config jsonb)',
  ]);
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  const yoga = createYoga({
    schema: createSchema({
      typeDefs: 'scalar JSON type Query { ok: Boolean } type Mutation { launch(config: JSON): ID! }',
      resolvers: {
        Mutation: {
          launch: async (_: unknown, args: { config: unknown }) => {
            const text = 'insert into launched (config) values ($1) returning id';
            const { rows } = await pool.query<{ id: number }>({
              name: 'launch',
              text,
              values: [JSON.stringify(args.config)],
            });
            return String(rows[0]?.id);
          },
        },
      },
    }),
    logging: false,
    graphiql: false,
    landingPage: false,
  });
  const server = http.createServer((request, response) => void yoga(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const perSecond = await load(
    `http://127.0.0.1:${port}/graphql`,
    'mutation ($config: JSON) { launch(config: $config) }',
    options,
  );
  server.closeAllConnections();
  server.close();
  await pool.end();
  return perSecond;
}

/** Launches a second by callers that each wait for their call before they make the next one. */
async function callersOf(
  call: () => Promise<unknown>,
  { connections, batch, seconds }: LaunchOptions,
): Promise<number> {
  const callFor = async (ms: number): Promise<number> => {
    const start = performance.now();
    let calls = 0;
    const caller = async (): Promise<void> => {
      while (performance.now() < start + ms) {
        await call();
        calls++;
      }
    };
    await Promise.all(Array.from({ length: connections }, caller));
    return (calls * batch) / ((performance.now() - start) / 1000);
  };
  await callFor(1000);
  return callFor(seconds * 1000);
}

async function measureInProcess(url: string, options: LaunchOptions): Promise<number> {
  await prepareProduct(url, { slots: null, throttled: false });
  const services = await startProduct(url, null);
  const perSecond = await callersOf(() => launch(services, options.batch, config), options);
  await services.stop();
  return perSecond;
}

async function measureGraphile(url: string, options: LaunchOptions): Promise<number> {
  const graphile = loadGraphileWorker();
  const utils = await graphile.makeWorkerUtils({
    connectionString: url,
    maxPoolSize: 10,
    logger: silentLogger(graphile),
  });
  await utils.migrate();
  const jobs = Array.from({ length: options.batch }, () => ({ identifier: 'noop', payload: config }));
  const add = () => (options.batch === 1 ? utils.addJob('noop', config) : utils.addJobs(jobs));
  const perSecond = await callersOf(add, options);
  await utils.release();
  return perSecond;
}

async function main(): Promise<void> {
  const given = measureOptions<LaunchOptions>();
  if (given) {
    const url = await createDatabase(given.server, given.database);
    const measure = {
      http: measureHttp,
      yoga: measureYoga,
      inProcess: measureInProcess,
      graphile: measureGraphile,
    };
    answer({ launchesPerSecond: Math.round(await measure[given.by](url, given)) });
    return;
  }
  const seconds = Number(process.env.BENCH_SECONDS ?? 4);
  const comparison = (
    title: string,
    options: object,
    subjects: Record<string, LaunchOptions['by']>,
  ): Comparison => ({
    title,
    figures: [{ name: 'launchesPerSecond', unit: 'launches/s' }],
    ratios: 'of the first',
    rounds,
    subjects: Object.entries(subjects).map(([label, by]) => ({
      label,
      options: { by, seconds, ...options },
    })),
  });
  const single = (connections: number): Comparison =>
    comparison(
      `Single launches by ${connections} callers`,
      { connections, batch: 1 },
      {
        'Runplane, launchRun over HTTP': 'http',
        'graphql-yoga with one INSERT, over HTTP': 'yoga',
        'graphile-worker addJob, in process': 'graphile',
        'Runplane, in process': 'inProcess',
      },
    );
  const batches = comparison(
    'Launches in batches of 500 by one caller',
    { connections: 1, batch: 500 },
    { 'Runplane launchRuns, in process': 'inProcess', 'graphile-worker addJobs, in process': 'graphile' },
  );
  await compareAll(fileURLToPath(import.meta.url), [single(10), single(32), batches]);
}

await main();
