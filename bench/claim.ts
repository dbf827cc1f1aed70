import { fileURLToPath } from 'node:url';
import { pastTasks, readyTasks } from '../test/support/many-tasks.sql.ts';
import { type Claimer, ProductClaimer } from './support/claimer.ts';
import {
  answer,
  asked,
  type Comparison,
  compareAll,
  measureOptions,
  median,
  type Place,
  rounds,
  type Subject,
} from './support/compare.ts';
import { createFloor, FloorQueue } from './support/floor.ts';
import { ample, prepareAgents } from './support/product.ts';
import { createDatabase, databaseUrl, onDatabase, settle } from './support/server.ts';

/** What claims of 100 tasks and their completion cost, and what makes claims slower. */
interface ClaimOptions extends Place {
  queue: 'runplane' | 'floor';
  agents: number;
  /** Each agent has a limit and a throttle of its own, which are not reached. */
  limited: boolean;
  ready: number;
  history: number;
  /** Tasks of one more agent, all before the others: it is at its limit. */
  blocked: number;
  /** Callers that claim at the same time. */
  claimers: number;
  /** Of each caller. */
  claims: number;
  /** Before these, and not measured. */
  warmUp: number;
  /** What was claimed is inserted anew, outside of what is measured. */
  refilled: boolean;
}

const batch = 100;
const blockedAgent = 'full';
const agentNames = (count: number): string[] => Array.from({ length: count }, (_, n) => `agent-${n}`);

async function prepareProduct(url: string, options: ClaimOptions): Promise<void> {
  const names = agentNames(options.agents);
  const agents = names.map((name) => ({
    name,
    maxConcurrentTasks: options.limited ? 100_000 : null,
    throttles: options.limited ? [{ ...ample, name: `of ${name}` }] : [],
  }));
  await prepareAgents(url, null, [{ name: blockedAgent, maxConcurrentTasks: 10, throttles: [] }, ...agents]);
  if (options.blocked > 0) {
    await onDatabase(url, readyTasks({ agents: [blockedAgent], count: options.blocked + 10, priority: 0 }));
    const claimer = await ProductClaimer.start(url, [blockedAgent]);
    const claimed = await claimer.claim(batch);
    if (claimed.length !== 10) throw new Error(`the agent in front has ${claimed.length} leases`);
    await claimer.close();
  }
  await onDatabase(url, readyTasks({ agents: names, count: options.ready, priority: 0 }));
  await onDatabase(url, pastTasks({ agents: names, count: options.history }));
}

async function prepare(options: ClaimOptions): Promise<void> {
  const url = await createDatabase(options.server, options.database);
  if (options.queue === 'runplane') await prepareProduct(url, options);
  else {
    await createFloor(url);
    const floor = new FloorQueue(url);
    await floor.insert(options.ready);
    await floor.close();
  }
  await settle(url);
  answer({});
}

async function measureClaims<Job>(claimer: Claimer<Job>, options: ClaimOptions): Promise<void> {
  const claimMs: number[] = [];
  const completeMs: number[] = [];
  let claimed = 0;
  const cycle = async (): Promise<void> => {
    const start = performance.now();
    const jobs = await claimer.claim(batch);
    const claimedAt = performance.now();
    // Of several at a time one may get what the others leave; alone it has no reason to get less.
    if (jobs.length < batch && options.claimers === 1)
      throw new Error(`a claim brought ${jobs.length} tasks`);
    claimed += jobs.length;
    await claimer.complete(jobs);
    claimMs.push(claimedAt - start);
    completeMs.push(performance.now() - claimedAt);
    if (options.refilled) await claimer.insert(batch);
  };
  const caller = async (cycles: number): Promise<void> => {
    for (let n = 0; n < cycles; n++) await cycle();
  };
  const callers = (cycles: number): Promise<unknown> =>
    Promise.all(Array.from({ length: options.claimers }, () => caller(cycles)));
  await callers(options.warmUp);
  claimMs.length = 0;
  completeMs.length = 0;
  claimed = 0;
  const start = performance.now();
  await callers(options.claims);
  const seconds = (performance.now() - start) / 1000;
  answer({
    claimMs: median(claimMs),
    completeMs: median(completeMs),
    msPerTask: (sum(claimMs) + sum(completeMs)) / claimed,
    tasksPerSecond: claimed / seconds,
  });
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

async function measure(options: ClaimOptions): Promise<void> {
  const url = databaseUrl(options.server, options.database);
  if (options.queue === 'floor') {
    const floor = new FloorQueue(url);
    await measureClaims(floor, options);
    return floor.close();
  }
  const claimer = await ProductClaimer.start(url, agentNames(options.agents));
  await measureClaims(claimer, options);
  await claimer.close();
}

function comparisons(): Record<string, Comparison> {
  const size = (name: string, fast: number, full: number): number =>
    Number(process.env[name] ?? (asked.full ? full : fast));
  const ready = size('BENCH_READY', 300_000, 3_000_000);
  const history = size('BENCH_HISTORY', 500_000, 5_000_000);
  const blocked = size('BENCH_BLOCKED', 200_000, 1_000_000);
  const claims = Number(process.env.BENCH_CLAIMS ?? 50);
  const usual: Omit<ClaimOptions, keyof Place> = {
    queue: 'runplane',
    agents: 8,
    limited: true,
    ready: 20_000,
    history: 0,
    blocked: 0,
    claimers: 1,
    claims,
    warmUp: 5,
    refilled: true,
  };
  const subject = (label: string, options: Partial<ClaimOptions>): Subject => ({
    label,
    options: { ...usual, ...options },
  });
  const common = { ratios: 'to the first', rounds, preparedOnce: true } as const;
  const claimMs = { name: 'claimMs', unit: 'ms a claim of 100' };
  const completeMs = { name: 'completeMs', unit: 'ms a completion of 100' };
  // Without anything that would refill, there has to be enough for all rounds.
  const throughput = { claimers: 4, refilled: false, ready: rounds * 4 * (claims + usual.warmUp) * batch };
  return {
    cost: {
      ...common,
      title: 'Claim and complete 100 tasks at a time',
      figures: [{ name: 'msPerTask', unit: 'ms a task' }, claimMs, completeMs],
      // As long as a process compiles what it runs often, it spends more on that than on the work: a server that was just
      // started is not what is asked about.
      subjects: [
        subject('raw SQL floor', { queue: 'floor', warmUp: 100 }),
        subject('Runplane, 8 agents with limits', { warmUp: 100 }),
      ],
    },
    growth: {
      ...common,
      title: 'Claims over a small and over a large database',
      figures: [claimMs, completeMs],
      subjects: [
        subject('1,000 ready', { ready: 1000 }),
        subject(`${ready} ready, ${history} in the past`, { ready, history }),
      ],
    },
    blocked: {
      ...common,
      title: 'Claims past the tasks of an agent at its limit',
      figures: [claimMs],
      subjects: [subject('none in front', {}), subject(`${blocked} in front`, { blocked })],
    },
    agents: {
      ...common,
      title: 'Claims by 4 callers, all work on one agent or on many',
      figures: [{ name: 'tasksPerSecond', unit: 'tasks/s' }, claimMs],
      subjects: [
        subject('256 agents with limits', { ...throughput, agents: 256 }),
        subject('8 agents with limits', { ...throughput, agents: 8 }),
        subject('one agent with limits', { ...throughput, agents: 1 }),
      ],
    },
  };
}

async function main(): Promise<void> {
  const given = measureOptions<ClaimOptions>();
  if (given) return given.does === 'prepare' ? prepare(given) : measure(given);
  const chosen = Object.entries(comparisons()).filter(([name]) => asked.wants(name));
  await compareAll(
    fileURLToPath(import.meta.url),
    chosen.map(([, comparison]) => comparison),
  );
}

await main();
