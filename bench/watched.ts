import { fileURLToPath } from 'node:url';
import { startApp } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import { answer, compareAll, measureOptions, type Place, rounds } from './support/compare.ts';
import { operation } from './support/operations.ts';
import { launchAll, prepareProduct, silent, untilWorkedOff } from './support/product.ts';
import { createDatabase, settle } from './support/server.ts';
import { startWatchers } from './support/watchers.ts';

/** Jobs are launched and worked off by one process, while it tells everything that becomes of them to streams. */
interface WatchedOptions extends Place {
  watched: keyof typeof watching;
  jobs: number;
}

/** Each task is created, claimed and completed. */
const changesOfTask = 3;
const streams = 100;
const batch = 500;

const ofCorrelation = (id: string) => ({
  query: operation('BenchCorrelation'),
  variables: { id: `${id}-{n}` },
});
const everything = { query: operation('BenchEverything'), variables: {} };
/** Who watches, and how many of the jobs each change is told of, all streams together. */
const watching = {
  nobody: null,
  own: { streams, ...ofCorrelation('own'), told: () => streams },
  page: { streams: 1, ...everything, told: (jobs: number) => jobs },
  shares: { streams, ...ofCorrelation('share'), told: (jobs: number) => jobs - streams },
  everything: { streams: 10, ...everything, told: (jobs: number) => jobs * 10 },
} as const;

/** The first of each part of the jobs is followed by who follows one; the others belong to shares of all. */
const correlationId = (job: number, jobs: number): string => {
  const part = jobs / streams;
  return job % part === 0 ? `own-${job / part}` : `share-${job % streams}`;
};

async function measure({ server, database, watched, jobs }: WatchedOptions): Promise<void> {
  const url = await createDatabase(server, database);
  await prepareProduct(url, { slots: 50, throttled: true });
  await settle(url);
  const app = await startApp({
    config: readConfig({ DATABASE_URL: url, RUNPLANE_PORT: '0', LOG_LEVEL: 'error' }),
    handlers: new Map([['noop', () => ({})]]),
    log: silent,
    onProgress: () => {},
  });
  const how = watching[watched];
  const watchers =
    how &&
    (await startWatchers({
      url: `${app.url}/graphql`,
      query: how.query,
      variables: how.variables,
      marker: '"id":"chg_',
      round: how.told(jobs) * changesOfTask,
      streams: how.streams,
    }));

  const cpu = process.cpuUsage();
  const start = performance.now();
  for (let first = 0; first < jobs; first += batch) {
    const runs = Array.from({ length: Math.min(batch, jobs - first) }, (_, i) => ({
      job: 'noop',
      config: {},
      correlationId: correlationId(first + i, jobs),
    }));
    await launchAll(app.services, runs);
  }
  await untilWorkedOff(app.services);
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  // Everything was told, or this waits for ever.
  await watchers?.told();
  const toldSeconds = (performance.now() - start) / 1000;
  watchers?.stop();
  await app.stop();
  answer({
    jobsPerSecond: jobs / seconds,
    jobsToldPerSecond: jobs / toldSeconds,
    processorMicroseconds: (user + system) / jobs,
  });
}

async function main(): Promise<void> {
  const given = measureOptions<WatchedOptions>();
  if (given) return measure(given);
  const jobs = Number(process.env.BENCH_JOBS ?? 20_000);
  const subjects = (['nobody', 'own', 'page', 'shares', 'everything'] as const).map((watched) => {
    const labels = {
      nobody: 'nobody watches',
      own: `${streams} streams, each of one run`,
      page: 'one stream of everything',
      shares: `${streams} streams, each of its share of the runs`,
      everything: `${watching.everything.streams} streams of everything`,
    };
    return { label: labels[watched], options: { watched, jobs } };
  });
  await compareAll(fileURLToPath(import.meta.url), [
    {
      title: `Launch ${jobs} jobs in batches and work them off, while streams tell of them`,
      figures: [
        { name: 'jobsPerSecond', unit: 'jobs/s' },
        { name: 'jobsToldPerSecond', unit: 'jobs/s until all was told' },
        { name: 'processorMicroseconds', unit: "µs of the server's processor time a job" },
      ],
      ratios: 'to the first',
      rounds,
      subjects,
    },
  ]);
}

await main();
