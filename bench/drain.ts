import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { answer, compareAll, measureOptions, type Place, rounds, type Subject } from './support/compare.ts';
import { loadGraphileWorker, loadPgBoss, silentLogger } from './support/peers.ts';
import { launch, prepareProduct, startProduct } from './support/product.ts';
import { createDatabase, onDatabase } from './support/server.ts';

/** Jobs that do nothing are inserted, then one process works them off: what the queue itself costs. */
interface DrainOptions extends Place {
  queue: 'runplane' | 'graphile' | 'pgboss';
  jobs: number;
  slots: number | null;
  /** The settings that a project's own documents give for throughput; else its defaults. */
  tuned: boolean;
  /** Each job reports what a model used. */
  usage: boolean;
}

interface Queue {
  insert(count: number): Promise<void>;
  /** Starts to work; calls back at the end of each job's handler. */
  work(onJob: () => void): Promise<() => Promise<void>>;
  /** Selects one row with a boolean: whether any job is not over yet. */
  unfinished: string;
  /** Selects one row with the number of jobs that were completed and kept; null where completed jobs are deleted. */
  kept: string | null;
  close(): Promise<void>;
}

const payload = { document: 's3://bucket/some/key.pdf', page: 1 };

async function openRunplane(url: string, options: DrainOptions): Promise<Queue> {
  await prepareProduct(url, { slots: options.slots, throttled: options.tuned });
  let number = 0;
  const usage = () => [
    { model: 'model-1', inputTokens: 1200, outputTokens: 300, cost: '0.0042', responseId: `r${number++}` },
  ];
  return {
    insert: async (count) => {
      const services = await startProduct(url, null);
      for (let left = count; left > 0; left -= 500) await launch(services, Math.min(500, left), payload);
      await services.stop();
    },
    work: async (onJob) => {
      const services = await startProduct(url, () => {
        onJob();
        return options.usage ? { output: { done: true }, usage: usage() } : {};
      });
      return () => services.stop();
    },
    unfinished: 'select exists (select from runplane.leases) or exists (select from runplane.ready_tasks)',
    kept: `select count(*)::int from runplane.tasks t join runplane.attempts a on a.task_id = t.id join runplane.runs r on r.id = t.run_id
            where t.state = 'COMPLETED' and a.status = 'COMPLETED' and r.status = 'COMPLETED'`,
    close: async () => {},
  };
}

async function openGraphile(url: string, { slots, tuned }: DrainOptions): Promise<Queue> {
  const graphile = loadGraphileWorker();
  const logger = silentLogger(graphile);
  const utils = await graphile.makeWorkerUtils({ connectionString: url, maxPoolSize: 10, logger });
  await utils.migrate();
  const concurrentJobs = slots ?? 10;
  return {
    insert: async (count) => {
      for (let left = count; left > 0; left -= 500) {
        await utils.addJobs(
          Array.from({ length: Math.min(500, left) }, () => ({ identifier: 'noop', payload })),
        );
      }
    },
    work: async (onJob) => {
      const batching = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
      const worker = {
        connectionString: url,
        concurrentJobs,
        maxPoolSize: concurrentJobs + 2,
        ...(tuned && batching),
      };
      const runner = await graphile.run({
        preset: { worker },
        logger,
        noHandleSignals: true,
        taskList: { noop: async () => onJob() },
      });
      return () => runner.stop();
    },
    unfinished: 'select exists (select from graphile_worker._private_jobs)',
    kept: null,
    close: () => utils.release(),
  };
}

async function openPgBoss(url: string, options: DrainOptions): Promise<Queue> {
  const Boss = loadPgBoss();
  const boss = new Boss({ connectionString: url, max: 20, schedule: false });
  boss.on('error', () => {});
  await boss.start();
  await boss.createQueue('noop');
  const slots = options.slots ?? 10;
  return {
    insert: async (count) => {
      for (let left = count; left > 0; left -= 500) {
        await boss.insert(
          Array.from({ length: Math.min(500, left) }, () => ({ name: 'noop', data: payload })),
        );
      }
    },
    // work() polls twice a second at most; fetch() and complete() in loops are the fastest way that is documented.
    work: async (onJob) => {
      let stopped = false;
      const loop = async (): Promise<void> => {
        while (!stopped) {
          const jobs = await boss.fetch('noop', { batchSize: 500 });
          for (let i = 0; i < jobs.length; i += slots) {
            await Promise.all(jobs.slice(i, i + slots).map(async () => onJob()));
          }
          if (jobs.length > 0)
            await boss.complete(
              'noop',
              jobs.map(({ id }) => id),
            );
          else await sleep(20);
        }
      };
      const loops = Array.from({ length: 4 }, loop);
      return async () => {
        stopped = true;
        await Promise.all(loops);
      };
    },
    unfinished: `select exists (select from pgboss.job where name = 'noop' and state < 'completed')`,
    kept: `select count(*)::int from pgboss.job where name = 'noop' and state = 'completed'`,
    close: () => boss.stop({ graceful: false }),
  };
}

async function measure(options: DrainOptions): Promise<void> {
  const url = await createDatabase(options.server, options.database);
  const open = { runplane: openRunplane, graphile: openGraphile, pgboss: openPgBoss }[options.queue];
  const queue = await open(url, options);
  await queue.insert(options.jobs);
  // Otherwise autovacuum would do it at a time of its own choosing.
  await onDatabase(url, ['vacuum analyze']);

  const observer = new pg.Client({ connectionString: url });
  await observer.connect();
  const select = async (text: string): Promise<unknown> => {
    const { rows } = await observer.query<unknown[]>({ text, rowMode: 'array' });
    return rows[0]?.[0];
  };
  let handled = 0;
  let handledAll = (): void => {};
  const all = new Promise<void>((resolve) => {
    handledAll = resolve;
  });
  const cpu = process.cpuUsage();
  const start = performance.now();
  const stop = await queue.work(() => {
    if (++handled === options.jobs) handledAll();
  });
  await all;
  // A job counts when the database says that it is over: batched completion would hide its work otherwise.
  while (await select(queue.unfinished)) await sleep(2);
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  await stop();
  if (queue.kept !== null && (await select(queue.kept)) !== options.jobs)
    throw new Error('not every job was completed');
  if (handled !== options.jobs) throw new Error(`${handled} handler calls for ${options.jobs} jobs`);
  await observer.end();
  await queue.close();
  answer({
    jobsPerSecond: Math.round(options.jobs / seconds),
    clientCpuPerJobUs: Math.round((user + system) / options.jobs),
    rssMb: Math.round(process.memoryUsage.rss() / 1e6),
  });
}

async function main(): Promise<void> {
  const given = measureOptions<DrainOptions>();
  if (given) return measure(given);
  const jobs = Number(process.env.BENCH_JOBS ?? 20_000);
  const subject = (label: string, options: Omit<DrainOptions, keyof Place | 'jobs'>): Subject => ({
    label,
    options: { ...options, jobs },
  });
  const tuned = { slots: 50, tuned: true, usage: false };
  const defaults = { slots: null, tuned: false, usage: false };
  await compareAll(fileURLToPath(import.meta.url), [
    {
      title: `Drain ${jobs} jobs with 50 slots`,
      figures: [{ name: 'jobsPerSecond', unit: 'jobs/s' }],
      ratios: 'of the first',
      rounds,
      subjects: [
        subject('Runplane', { queue: 'runplane', ...tuned }),
        subject('Runplane, usage reported by each job', { queue: 'runplane', ...tuned, usage: true }),
        subject('graphile-worker, tuned', { queue: 'graphile', ...tuned }),
        subject('pg-boss, tuned', { queue: 'pgboss', ...tuned }),
      ],
    },
    {
      title: `Drain ${jobs} jobs with default settings`,
      figures: [{ name: 'jobsPerSecond', unit: 'jobs/s' }],
      ratios: 'of the first',
      rounds,
      subjects: [
        subject('Runplane (8 slots, as shipped)', { queue: 'runplane', ...defaults }),
        subject('graphile-worker (10 slots)', { queue: 'graphile', ...defaults }),
      ],
    },
  ]);
}

await main();
