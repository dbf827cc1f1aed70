import { fileURLToPath } from 'node:url';
import { startApp } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import type { Services } from '../src/services.ts';
import { answer, compareAll, measureOptions, type Place, rounds } from './support/compare.ts';
import { launch, prepareProduct, silent, untilWorkedOff } from './support/product.ts';
import { createDatabase, settle } from './support/server.ts';
import { type SpanReceiver, spawnSpanReceiver } from './support/span-receiver.ts';

/** Jobs are launched and worked off by one process, which sends spans of them or does not. */
interface TelemetryOptions extends Place {
  spans: keyof typeof variables;
  jobs: number;
}

/** intake, claim, dispatch, attempt and result. */
const spansOfJob = 5;
const batch = 500;
const warmUp = 2000;
const config = { document: 's3://bucket/some/key.pdf', page: 1 };

/** What a user sets, and the address of the receiver. */
const variables = {
  off: null,
  everything: { OTEL_BSP_MAX_QUEUE_SIZE: '1000000', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4096' },
  asShipped: {},
  oneInTen: { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' },
} as const;

interface Spans {
  receiver: SpanReceiver;
  env: Record<string, string>;
}

/** Null: there are none. */
async function startSpans(given: Record<string, string> | null): Promise<Spans | null> {
  for (const name of Object.keys(process.env)) if (name.startsWith('OTEL_')) delete process.env[name];
  if (!given) return null;
  const receiver = await spawnSpanReceiver();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint, ...given };
  // The exporter reads them there, by itself.
  Object.assign(process.env, env);
  return { receiver, env };
}

async function measure({ server, database, spans, jobs }: TelemetryOptions): Promise<void> {
  const url = await createDatabase(server, database);
  await prepareProduct(url, { slots: 50, throttled: true });
  await settle(url);
  const sent = await startSpans(variables[spans]);
  const app = await startApp({
    config: readConfig({ ...sent?.env, DATABASE_URL: url, RUNPLANE_PORT: '0', LOG_LEVEL: 'error' }),
    handlers: new Map([['noop', () => ({})]]),
    log: silent,
    onProgress: () => {},
  });

  // What is loaded for the first spans, and compiled, is not of what they cost.
  await workOff(app.services, warmUp);
  await sent?.receiver.until(spans === 'everything' ? warmUp * spansOfJob : 1);
  const receivedBefore = sent?.receiver.received() ?? 0;

  const cpu = process.cpuUsage();
  const start = performance.now();
  await workOff(app.services, jobs);
  const seconds = (performance.now() - start) / 1000;
  // What is sent after the last job costs, too. Where some are dropped, nobody knows how many are to come.
  if (spans === 'everything') await sent?.receiver.until((warmUp + jobs) * spansOfJob);
  await app.stop();
  const { user, system } = process.cpuUsage(cpu);
  const received = (sent?.receiver.received() ?? 0) - receivedBefore;
  sent?.receiver.stop();
  answer({
    jobsPerSecond: jobs / seconds,
    processorMicroseconds: (user + system) / jobs,
    spansPerJob: received / jobs,
  });
}

async function workOff(services: Services, jobs: number): Promise<void> {
  for (let left = jobs; left > 0; left -= batch) await launch(services, Math.min(batch, left), config);
  await untilWorkedOff(services);
}

async function main(): Promise<void> {
  const given = measureOptions<TelemetryOptions>();
  if (given) return measure(given);
  const jobs = Number(process.env.BENCH_JOBS ?? 20_000);
  const labels: Record<TelemetryOptions['spans'], string> = {
    off: 'off',
    everything: 'spans, all of them sent',
    asShipped: 'spans, with the queue as shipped',
    oneInTen: 'spans of every tenth trace',
  };
  const subjects = Object.entries(labels).map(([spans, label]) => ({ label, options: { spans, jobs } }));
  await compareAll(fileURLToPath(import.meta.url), [
    {
      title: `Launch ${jobs} jobs in batches and work them off, while spans of them are sent`,
      figures: [
        { name: 'jobsPerSecond', unit: 'jobs/s' },
        { name: 'processorMicroseconds', unit: "µs of the server's processor time a job" },
        { name: 'spansPerJob', unit: 'spans a job that were received', alone: true },
      ],
      ratios: 'to the first',
      rounds,
      subjects,
    },
  ]);
}

await main();
