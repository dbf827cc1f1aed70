import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startApp } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import { pastCorrelationId, pastTraces } from '../test/support/many-tasks.sql.ts';
import {
  answer,
  asked,
  compareAll,
  measureOptions,
  type Place,
  percentile,
  rounds,
} from './support/compare.ts';
import { operation } from './support/operations.ts';
import { prepareAgents } from './support/product.ts';
import { createDatabase, databaseUrl, onDatabase, settle } from './support/server.ts';

/**
 * One request that asks for everything of a correlation id: its event, run, task, attempt, what was produced, and the
 * record of the knowledge pipeline. Each event of the past has all of these.
 */
interface TraceOptions extends Place {
  events: number;
  traces: number;
}

const agents = ['past'];
const warmUp = 200;
const query = operation('BenchTrace');

async function prepare({ server, database, events }: TraceOptions): Promise<void> {
  const url = await createDatabase(server, database);
  await prepareAgents(
    url,
    null,
    agents.map((name) => ({ name, maxConcurrentTasks: null, throttles: [] })),
  );
  await onDatabase(url, pastTraces({ agents, count: events }));
  await settle(url);
  answer({});
}

async function measure({ server, database, events, traces }: TraceOptions): Promise<void> {
  const url = databaseUrl(server, database);
  const settings = { RUNPLANE_PORT: '0', RUNPLANE_ROLES: 'api', DATABASE_URL: url, LOG_LEVEL: 'error' };
  const log = {
    info: () => {},
    warn: () => {},
    error: (details: object, text: string) => console.error(text, details),
  };
  const app = await startApp({ config: readConfig(settings), log, onProgress: () => {} });
  const ask = async (): Promise<number> => {
    const id = pastCorrelationId(Math.floor(Math.random() * events));
    const start = performance.now();
    const response = await fetch(`${app.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables: { id } }),
    });
    const text = await response.text();
    const ms = performance.now() - start;
    if (Object.values(tracedIn(text)).some((list) => list.nodes.length !== 1)) throw new Error(text);
    return ms;
  };
  for (let n = 0; n < warmUp; n++) await ask();
  await sleep(500);
  const times: number[] = [];
  for (let n = 0; n < traces; n++) times.push(await ask());
  await app.stop();
  answer({ p50: percentile(times, 50), p95: percentile(times, 95) });
}

const tracedIn = (text: string): Record<string, { nodes: unknown[] }> =>
  (JSON.parse(text) as { data: { trace: Record<string, { nodes: unknown[] }> } }).data.trace;

async function main(): Promise<void> {
  const given = measureOptions<TraceOptions>();
  if (given) return given.does === 'prepare' ? prepare(given) : measure(given);
  const many = Number(process.env.BENCH_TRACES ?? (asked.full ? 10_000_000 : 1_000_000));
  const traces = 1000;
  await compareAll(fileURLToPath(import.meta.url), [
    {
      title: 'Everything of a correlation id, in one request over HTTP',
      figures: [
        { name: 'p50', unit: 'ms, median' },
        { name: 'p95', unit: 'ms, 95th percentile' },
      ],
      ratios: 'to the first',
      rounds,
      preparedOnce: true,
      subjects: [1000, many].map((events) => ({ label: `${events} events`, options: { events, traces } })),
    },
  ]);
}

await main();
