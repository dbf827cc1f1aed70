import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { buildSchema, parse } from 'graphql';
import { createHandler } from 'graphql-sse/lib/use/http';
import { Repeater } from 'graphql-yoga';
import { startApp } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import {
  answer,
  asked,
  type Comparison,
  compareAll,
  type Figure,
  measureOptions,
  median,
  type Place,
  percentile,
  rounds,
} from './support/compare.ts';
import { operation } from './support/operations.ts';
import { launch, prepareProduct, silent, startProduct } from './support/product.ts';
import { createDatabase } from './support/server.ts';
import { startWatchers } from './support/watchers.ts';

/** One event at a time to many streams of the same subscription, each over a connection of its own. */
interface StreamsOptions extends Place {
  by: 'runplane' | 'graphql-sse';
  streams: number;
  events: number;
}

const query = operation('BenchEverything');
interface Published {
  url: string;
  publish(): Promise<void>;
  stop(): Promise<void>;
}

/** Launches, each one change of the status of a task. */
async function serveProduct(server: string, database: string): Promise<Published> {
  const url = await createDatabase(server, database);
  await prepareProduct(url, { slots: null, throttled: false });
  const settings = { RUNPLANE_PORT: '0', RUNPLANE_ROLES: 'api', DATABASE_URL: url, LOG_LEVEL: 'error' };
  const app = await startApp({ config: readConfig(settings), log: silent, onProgress: () => {} });
  const services = await startProduct(url, null);
  return {
    url: `${app.url}/graphql`,
    publish: () => launch(services, 1, {}),
    stop: async () => {
      await services.stop();
      await app.stop();
    },
  };
}

/** The library alone: the same message from memory, without a database. */
async function serveLibrary(): Promise<Published> {
  const schema = buildSchema(`
    type Change { id: ID sequence: Int at: String taskId: ID runId: ID job: String step: String agent: String fromStatus: String toStatus: String }
    type Changes { cursor: String caughtUp: Boolean changes: [Change!] }
    type Query { ok: Boolean }
    type Subscription { taskStatusChanged: Changes }`);
  const listeners = new Set<(value: object) => void>();
  const rootValue = {
    taskStatusChanged: () =>
      new Repeater<object>((push, stop) => {
        const listener = (value: object): void => void push({ taskStatusChanged: value });
        listeners.add(listener);
        void stop.then(() => listeners.delete(listener));
      }),
  };
  const handler = createHandler({
    schema,
    onSubscribe: (_, { query: source, variables }) => ({
      schema,
      rootValue,
      document: parse(source ?? ''),
      variableValues: variables,
      contextValue: undefined,
    }),
  });
  const server = http.createServer((request, response) => void handler(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  let sequence = 0;
  const id = '01a22a02-0732-7107-9d97-c2ec95fe58a4';
  return {
    url: `http://127.0.0.1:${port}/`,
    publish: async () => {
      sequence++;
      const change = {
        id: `chg_${id}${sequence}`,
        sequence,
        at: new Date().toISOString(),
        taskId: `task_${id}`,
        runId: `run_${id}`,
        job: 'noop',
        step: 'only',
        agent: 'noop',
        fromStatus: null,
        toStatus: 'ENQUEUED',
      };
      const message = { cursor: `c${id}${id}${sequence}`, caughtUp: true, changes: [change] };
      for (const listener of listeners) listener(message);
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function measure({ by, streams, events, server, database }: StreamsOptions): Promise<void> {
  const served = by === 'runplane' ? await serveProduct(server, database) : await serveLibrary();
  const before = residentMemory();
  const watchers = await startWatchers({ url: served.url, query, streams, marker: '"changes":[{' });
  const open = residentMemory();
  const waits: number[] = [];
  const one = async (): Promise<void> => {
    await served.publish();
    const start = performance.now();
    await watchers.told();
    waits.push(performance.now() - start);
  };
  for (let n = 0; n < 5; n++) await one();
  waits.length = 0;
  const start = performance.now();
  const cpu = process.cpuUsage();
  for (let n = 0; n < events; n++) await one();
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  answer({
    messagesPerSecond: (streams * events) / seconds,
    processorMicroseconds: (user + system) / (streams * events),
    allToldMs: median(waits),
    allToldP99Ms: percentile(waits, 99),
    kilobytesAStream: (open - before) / streams / 1024,
  });
  watchers.stop();
  await served.stop();
}

/** Without what a collection of garbage would free. */
function residentMemory(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage.rss();
}

async function main(): Promise<void> {
  const given = measureOptions<StreamsOptions>();
  if (given) return measure(given);
  const comparison = (streams: number, events: number, figures: readonly Figure[]): Comparison => ({
    title: `${events} events, one at a time, to ${streams} streams`,
    figures,
    ratios: 'to the first',
    rounds,
    subjects: [
      { label: 'graphql-sse, from memory', options: { by: 'graphql-sse', streams, events } },
      { label: 'Runplane, from Postgres', options: { by: 'runplane', streams, events } },
    ],
  });
  const comparisons = {
    fanout: comparison(Number(process.env.BENCH_STREAMS ?? 1000), Number(process.env.BENCH_EVENTS ?? 100), [
      { name: 'messagesPerSecond', unit: 'messages/s' },
      { name: 'processorMicroseconds', unit: "µs of the server's processor time a message" },
      { name: 'allToldMs', unit: 'ms from the commit until all are told, median' },
      { name: 'allToldP99Ms', unit: 'ms from the commit until all are told, 99th percentile' },
    ]),
    memory: comparison(Number(process.env.BENCH_OPEN_STREAMS ?? 10_000), 5, [
      { name: 'kilobytesAStream', unit: 'kB of resident memory a stream' },
    ]),
  };
  const wanted = Object.entries(comparisons).filter(([name]) => asked.wants(name));
  await compareAll(
    fileURLToPath(import.meta.url),
    wanted.map(([, each]) => each),
  );
}

await main();
