import { setTimeout as sleep } from 'node:timers/promises';
import { migrate } from '../../src/db/migrate.ts';
import { Database } from '../../src/db/pool.ts';
import type { InlineHandler } from '../../src/dispatch/handlers.ts';
import type { LaunchRunInput } from '../../src/intake/types.ts';
import { seedRegistry } from '../../src/operator/seed-registry.ts';
import type { SaveThrottleInput } from '../../src/operator/types.ts';
import { type Services, startServices } from '../../src/services.ts';

const timeouts = { statement: 30_000, lock: 5_000, idleInTransaction: 30_000 };
/** What a server has when its configuration does not say otherwise. */
const shippedConnections = 10;
const actor = { name: 'bench', requestId: null };
const warn = (fields: object, message: string): void => console.error(message, fields);
/** Only faults are told. */
export const silent = { info: () => {}, warn: () => {}, error: warn };

export interface ProductOptions {
  /** Slots of the pool that executes the jobs; null leaves what is shipped. */
  slots: number | null;
  /** A concurrency limit well above what the slots use: checked at each claim, never reached. */
  throttled: boolean;
}

/** An agent in the server's process, and a job of the same name whose only step is for it. */
export interface AgentOptions {
  name: string;
  maxConcurrentTasks: number | null;
  throttles: readonly SaveThrottleInput[];
}

/** A limit well above what is used: checked at each claim, never reached. */
export const ample: SaveThrottleInput = { name: 'ample', maxConcurrentTasks: 100_000 };

/** Migrates a database and configures the job `noop`, with one step for an agent in the server's process. */
export const prepareProduct = (url: string, { slots, throttled }: ProductOptions): Promise<void> =>
  prepareAgents(url, slots, [
    { name: 'noop', maxConcurrentTasks: null, throttles: throttled ? [ample] : [] },
  ]);

/** The same for other agents, whose tasks are executed as those of the job `noop` are. */
export async function prepareAgents(
  url: string,
  slots: number | null,
  agents: readonly AgentOptions[],
): Promise<void> {
  await migrate(url);
  const services = await startProduct(url, null);
  await seedRegistry(services.db);
  const { configuration } = services;
  const saved = [];
  if (slots !== null)
    saved.push(await configuration.savePool({ name: 'core', slotsPerReplica: slots }, actor));
  for (const { name, maxConcurrentTasks, throttles } of agents) {
    for (const throttle of throttles) saved.push(await configuration.saveThrottle(throttle, actor));
    saved.push(
      await configuration.saveAgent(
        {
          name,
          dispatch: { inline: { handler: 'noop' } },
          maxConcurrentTasks,
          throttles: throttles.map((throttle) => throttle.name),
        },
        actor,
      ),
    );
    saved.push(await configuration.saveJob({ name, steps: [{ name: 'only', agent: name }] }, actor));
  }
  for (const outcome of saved) if ('message' in outcome) throw new Error(outcome.message);
  await services.stop();
}

/** All services of one process; without a handler it executes nothing. */
export async function startProduct(url: string, handler: InlineHandler | null): Promise<Services> {
  return startServices({
    database: { connectionString: url, maxConnections: shippedConnections, timeouts, ownSessions: true },
    listenUrl: url,
    installation: await migrate(url),
    scheduler: handler !== null,
    cancelGraceSeconds: 30,
    housekeeping: null,
    authentication: null,
    handlers: new Map(handler ? [['noop', handler]] : []),
    serverName: 'bench',
    log: { info: () => {}, warn, error: warn },
  });
}

/** Launches runs of the job `noop`; throws unless all were launched. */
export const launch = (services: Services, count: number, config: object): Promise<void> =>
  launchAll(
    services,
    Array.from({ length: count }, () => ({ job: 'noop', config })),
  );

export async function launchAll(services: Services, runs: readonly LaunchRunInput[]): Promise<void> {
  for (const outcome of await services.intake.launchRuns(runs))
    if (outcome.kind !== 'LaunchRunSuccess') throw new Error(JSON.stringify(outcome));
}

/** Until everything that was launched is worked off. */
export async function untilWorkedOff({ db }: Pick<Services, 'db'>): Promise<void> {
  const text =
    'select exists (select from runplane.ready_tasks) or exists (select from runplane.leases) as left';
  while ((await db.query<{ left: boolean }>({ text })).rows[0]?.left) await sleep(5);
}

export const openDatabase = (url: string): Database =>
  new Database({
    connectionString: url,
    maxConnections: 1,
    timeouts,
    ownSessions: true,
    applicationName: 'bench',
    onError: () => {},
  });
