import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { readyTasks } from '../test/support/many-tasks.sql.ts';
import {
  answer,
  asked,
  compareAll,
  measureOptions,
  type Place,
  percentile,
  rounds,
} from './support/compare.ts';
import { createFloor, FloorQueue, workFloor } from './support/floor.ts';
import { launchAll, prepareProduct, startProduct } from './support/product.ts';
import { createDatabase, databaseUrl, onDatabase, settle } from './support/server.ts';

/** All slots are busy with tasks of 20 ms, of which a large number waits; how soon does an urgent one start? */
interface UrgentOptions extends Place {
  queue: 'runplane' | 'floor';
  ready: number;
  probes: number;
}

/** As in the drain for throughput: what is fast there has to be prompt here. */
const slots = 50;
const taskMs = 20;
const low = -100;
const urgent = 100;

/** A queue at work. */
interface Working {
  launchUrgent(probe: number): Promise<void>;
  stop(): Promise<void>;
}
/** Called at the start of each handler; probes have a number. */
type OnStart = (probe: number | undefined) => void;

async function workProduct(url: string, onStart: OnStart): Promise<Working> {
  const services = await startProduct(url, async ({ input }) => {
    const { probe } = input as { probe?: number };
    onStart(probe);
    if (probe === undefined) await sleep(taskMs);
    return {};
  });
  return {
    launchUrgent: (probe) => launchAll(services, [{ job: 'noop', priority: urgent, config: { probe } }]),
    stop: () => services.stop(),
  };
}

async function workRaw(url: string, onStart: OnStart): Promise<Working> {
  const queue = new FloorQueue(url);
  const stop = await workFloor(url, slots, async ({ payload: { probe } }) => {
    onStart(probe);
    if (probe === undefined) await sleep(taskMs);
  });
  return {
    launchUrgent: (probe) => queue.insert(1, { priority: urgent, probe }),
    stop: async () => {
      await stop();
      await queue.close();
    },
  };
}

async function prepare({ queue, ready, server, database }: UrgentOptions): Promise<void> {
  const url = await createDatabase(server, database);
  if (queue === 'runplane') {
    await prepareProduct(url, { slots, throttled: true });
    await onDatabase(url, readyTasks({ agents: ['noop'], count: ready, priority: low }));
  } else {
    await createFloor(url);
    const floor = new FloorQueue(url);
    await floor.insert(ready, { priority: low });
    await floor.close();
  }
  await settle(url);
  answer({});
}

async function measure({ queue, probes, server, database }: UrgentOptions): Promise<void> {
  const url = databaseUrl(server, database);
  const launchedAt: number[] = [];
  const waits: number[] = [];
  let lowStarts = 0;
  let arrived = (): void => {};
  const working = await (queue === 'runplane' ? workProduct : workRaw)(url, (probe) => {
    if (probe === undefined) lowStarts++;
    else {
      waits.push(performance.now() - (launchedAt[probe] ?? Number.NaN));
      arrived();
    }
  });
  const send = async (count: number): Promise<void> => {
    const launches: Promise<void>[] = [];
    for (let n = 0; n < count; n++) {
      // The clock starts before the launch, and the next one does not wait for this one: a slow launch is not forgiven.
      launchedAt.push(performance.now());
      launches.push(working.launchUrgent(launchedAt.length - 1));
      await sleep(20 + Math.random() * 20);
    }
    await Promise.all(launches);
    while (waits.length < launchedAt.length) await new Promise<void>((resolve) => (arrived = resolve));
  };
  await sleep(2000);
  await send(20);
  waits.length = 0;
  launchedAt.length = 0;
  lowStarts = 0;
  const start = performance.now();
  await send(probes);
  const seconds = (performance.now() - start) / 1000;
  const lowPerSecond = lowStarts / seconds;
  await working.stop();
  answer({
    p50: percentile(waits, 50),
    p95: percentile(waits, 95),
    p99: percentile(waits, 99),
    lowPerSecond,
  });
}

async function main(): Promise<void> {
  const given = measureOptions<UrgentOptions>();
  if (given) return given.does === 'prepare' ? prepare(given) : measure(given);
  const ready = Number(process.env.BENCH_READY ?? (asked.full ? 1_000_000 : 200_000));
  const probes = Number(process.env.BENCH_PROBES ?? 300);
  await compareAll(fileURLToPath(import.meta.url), [
    {
      title: `Launch of an urgent task to its start, ${ready} tasks of ${taskMs} ms before it, ${slots} slots busy`,
      figures: [
        { name: 'p95', unit: 'ms, 95th percentile' },
        { name: 'p50', unit: 'ms, median' },
        { name: 'lowPerSecond', unit: 'other tasks/s meanwhile' },
      ],
      ratios: 'to the first',
      rounds,
      preparedOnce: true,
      subjects: [
        { label: 'raw SQL floor, no buffer', options: { queue: 'floor', ready, probes } },
        { label: 'Runplane', options: { queue: 'runplane', ready, probes } },
      ],
    },
  ]);
}

await main();
