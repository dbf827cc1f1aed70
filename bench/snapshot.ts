import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { readyTasks } from '../test/support/many-tasks.sql.ts';
import { type Claimer, ProductClaimer } from './support/claimer.ts';
import { answer, compareAll, measureOptions, type Place } from './support/compare.ts';
import { createFloor, FloorQueue } from './support/floor.ts';
import { ample, prepareAgents } from './support/product.ts';
import { createDatabase, onDatabase, settle } from './support/server.ts';

/**
 * Somebody leaves a transaction open, and Postgres cannot remove a dead row as long as it is: launches, claims and
 * completions go on, before, while and after it is held.
 */
interface SnapshotOptions extends Place {
  queue: 'runplane' | 'floor';
  /** That always wait. */
  backlog: number;
  /** That were claimed before and go on all the time. */
  long: number;
  beforeSeconds: number;
  heldSeconds: number;
  afterSeconds: number;
}

const agents = Array.from({ length: 8 }, (_, n) => `agent-${n}`);
const batch = 100;
const callers = 2;

async function prepare(url: string, { queue, backlog }: SnapshotOptions): Promise<Claimer<unknown>> {
  if (queue === 'floor') {
    await createFloor(url);
    const floor = new FloorQueue(url);
    await floor.insert(backlog);
    await settle(url);
    return floor;
  }
  await prepareAgents(
    url,
    null,
    agents.map((name) => ({
      name,
      maxConcurrentTasks: 100_000,
      throttles: [{ ...ample, name: `of ${name}` }],
    })),
  );
  await onDatabase(url, readyTasks({ agents, count: backlog, priority: 0 }));
  await settle(url);
  return ProductClaimer.start(url, agents);
}

async function measure(options: SnapshotOptions): Promise<void> {
  const url = await createDatabase(options.server, options.database);
  const claimer = await prepare(url, options);
  if (options.long > 0) await claimer.claim(options.long);
  let completed = 0;
  let stopped = false;
  const caller = async (): Promise<void> => {
    while (!stopped) {
      await claimer.insert(batch);
      const jobs = await claimer.claim(batch);
      await claimer.complete(jobs);
      completed += jobs.length;
    }
  };
  const working = Promise.all(Array.from({ length: callers }, caller));
  // A failed caller ends the measurement at once, and not when it is awaited.
  working.catch(() => {});
  /** Tasks a second in each part of this time. */
  const watch = async (what: string, seconds: number): Promise<number[]> => {
    const parts = Math.max(1, Math.round(seconds / 10));
    const rates: number[] = [];
    for (let part = 0; part < parts; part++) {
      const before = completed;
      const start = performance.now();
      await Promise.race([sleep((seconds * 1000) / parts), working]);
      rates.push(Math.round(((completed - before) * 1000) / (performance.now() - start)));
    }
    process.stderr.write(`    ${options.queue}, ${what}: ${rates.join(' ')} tasks/s\n`);
    return rates;
  };
  await watch('warming up', options.beforeSeconds / 2);
  const before = mean(await watch('before', options.beforeSeconds));
  const holder = new pg.Client({ connectionString: url });
  await holder.connect();
  await holder.query('begin isolation level repeatable read');
  await holder.query('select count(*) from pg_class');
  const held = await watch('held', options.heldSeconds);
  await holder.end();
  const after = await watch('released', options.afterSeconds);
  stopped = true;
  await working;
  await claimer.close();
  const last = held.at(-1) ?? Number.NaN;
  answer({ before, held: last, kept: last / before, recovered: Math.max(...after) / before });
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

async function main(): Promise<void> {
  const given = measureOptions<SnapshotOptions>();
  if (given) return measure(given);
  const scale = Number(process.env.BENCH_SCALE ?? 1);
  const options = {
    backlog: 10_000,
    beforeSeconds: 20 * scale,
    heldSeconds: 60 * scale,
    afterSeconds: 60 * scale,
  };
  await compareAll(fileURLToPath(import.meta.url), [
    {
      title: `Throughput after ${options.heldSeconds} s of a held snapshot`,
      figures: [
        { name: 'kept', unit: 'share of the throughput before, in its last 10 s' },
        { name: 'recovered', unit: 'share of the throughput before, best 10 s after it' },
        { name: 'before', unit: 'tasks/s before' },
      ],
      ratios: 'to the first',
      rounds: Number(process.env.BENCH_ROUNDS ?? 1),
      subjects: [
        { label: 'raw SQL floor', options: { queue: 'floor', long: 0, ...options } },
        { label: 'Runplane, 8 agents with limits', options: { queue: 'runplane', long: 0, ...options } },
        {
          label: 'the same, and 32 attempts that go on',
          options: { queue: 'runplane', long: 32, ...options },
        },
      ],
    },
  ]);
}

await main();
