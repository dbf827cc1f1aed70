import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { SaveThrottleInput } from '../src/operator/types.ts';
import {
  answer,
  type Comparison,
  compareAll,
  measureOptions,
  type Place,
  rounds,
} from './support/compare.ts';
import { launch, prepareAgents, startProduct } from './support/product.ts';
import { spawnReplica } from './support/replica.ts';
import { createDatabase, settle } from './support/server.ts';

/** A drain whose agent has no limits, or limits that every claim checks and none reaches. */
interface LimitsOptions extends Place {
  limits: 'off' | 'concurrency' | 'tokens' | 'both';
  replicas: number;
  jobs: number;
}

const slots = 50;
const config = { document: 's3://bucket/some/key.pdf', page: 1 };
const concurrency = { maxConcurrentTasks: 100_000 };
const tokens = { maxTokensPerMinute: 2_000_000_000 };
const throttles: Record<LimitsOptions['limits'], SaveThrottleInput[]> = {
  off: [],
  concurrency: [{ name: 'provider', ...concurrency }],
  tokens: [{ name: 'provider', ...tokens }],
  both: [{ name: 'provider', ...concurrency, ...tokens }],
};

async function measure({ server, database, limits, replicas, jobs }: LimitsOptions): Promise<void> {
  const url = await createDatabase(server, database);
  const maxConcurrentTasks =
    limits === 'concurrency' || limits === 'both' ? concurrency.maxConcurrentTasks : null;
  await prepareAgents(url, slots, [{ name: 'noop', maxConcurrentTasks, throttles: throttles[limits] }]);
  const services = await startProduct(url, null);
  for (let left = jobs; left > 0; left -= 500) await launch(services, Math.min(500, left), config);
  await services.stop();
  await settle(url);

  const observer = new pg.Client({ connectionString: url });
  await observer.connect();
  const select = async (text: string): Promise<unknown> => {
    const { rows } = await observer.query<unknown[]>({ text, rowMode: 'array' });
    return rows[0]?.[0];
  };
  const workers = await Promise.all(Array.from({ length: replicas }, () => spawnReplica(url)));
  const start = performance.now();
  for (const worker of workers) worker.begin();
  const unfinished =
    'select exists (select from runplane.ready_tasks) or exists (select from runplane.leases)';
  while (await select(unfinished)) await sleep(5);
  const seconds = (performance.now() - start) / 1000;
  for (const worker of workers) await worker.stop();
  const completed = await select(`select count(*)::int from runplane.attempts where status = 'COMPLETED'`);
  if (completed !== jobs) throw new Error(`${String(completed)} attempts completed of ${jobs} jobs`);
  await observer.end();
  answer({ jobsPerSecond: jobs / seconds });
}

async function main(): Promise<void> {
  const given = measureOptions<LimitsOptions>();
  if (given) return measure(given);
  const jobs = Number(process.env.BENCH_JOBS ?? 20_000);
  const comparison = (replicas: number): Comparison => ({
    title: `Drain ${jobs} jobs with ${replicas} process${replicas === 1 ? '' : 'es'} of ${slots} slots`,
    figures: [{ name: 'jobsPerSecond', unit: 'jobs/s' }],
    ratios: 'to the first',
    rounds,
    subjects: [
      { label: 'no limits', options: { limits: 'off', replicas, jobs } },
      { label: 'tasks at a time', options: { limits: 'concurrency', replicas, jobs } },
      { label: 'tokens a minute', options: { limits: 'tokens', replicas, jobs } },
      { label: 'both', options: { limits: 'both', replicas, jobs } },
    ],
  });
  await compareAll(fileURLToPath(import.meta.url), [comparison(1), comparison(4)]);
}

await main();
