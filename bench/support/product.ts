import { migrate } from '../../src/db/migrate.ts';
import { Database } from '../../src/db/pool.ts';
import type { InlineHandler } from '../../src/dispatch/handlers.ts';
import { seedRegistry } from '../../src/operator/seed-registry.ts';
import { type Services, startServices } from '../../src/services.ts';

const timeouts = { statement: 30_000, lock: 5_000, idleInTransaction: 30_000 };
/** What a server has when its configuration does not say otherwise. */
const shippedConnections = 10;
const actor = { name: 'bench', requestId: null };

export interface ProductOptions {
  /** Slots of the pool that executes the jobs; null leaves what is shipped. */
  slots: number | null;
  /** A concurrency limit well above what the slots use: checked at each claim, never reached. */
  throttled: boolean;
}

/** Migrates a database and configures the job `noop`, with one step for an agent in the server's process. */
export async function prepareProduct(url: string, { slots, throttled }: ProductOptions): Promise<void> {
  await migrate(url);
  const services = await startProduct(url, null);
  await seedRegistry(services.db);
  const { configuration } = services;
  const saved = [];
  if (throttled)
    saved.push(await configuration.saveThrottle({ name: 'ample', maxConcurrentTasks: 100_000 }, actor));
  if (slots !== null)
    saved.push(await configuration.savePool({ name: 'core', slotsPerReplica: slots }, actor));
  const throttles = throttled ? ['ample'] : [];
  saved.push(
    await configuration.saveAgent(
      { name: 'noop', dispatch: { inline: { handler: 'noop' } }, throttles },
      actor,
    ),
  );
  saved.push(await configuration.saveJob({ name: 'noop', steps: [{ name: 'only', agent: 'noop' }] }, actor));
  for (const outcome of saved) if ('message' in outcome) throw new Error(outcome.message);
  await services.stop();
}

/** All services of one process; without a handler it executes nothing. */
export async function startProduct(url: string, handler: InlineHandler | null): Promise<Services> {
  const warn = (fields: object, message: string): void => console.error(message, fields);
  return startServices({
    database: { connectionString: url, maxConnections: shippedConnections, timeouts, ownSessions: true },
    listenUrl: url,
    installation: await migrate(url),
    scheduler: handler !== null,
    housekeeping: null,
    handlers: new Map(handler ? [['noop', handler]] : []),
    serverName: 'bench',
    log: { info: () => {}, warn, error: warn },
  });
}

/** Launches runs of the job `noop`; throws unless all were launched. */
export async function launch(services: Services, count: number, config: object): Promise<void> {
  const outcomes = await services.intake.launchRuns(
    Array.from({ length: count }, () => ({ job: 'noop', config })),
  );
  for (const outcome of outcomes)
    if (outcome.kind !== 'LaunchRunSuccess') throw new Error(JSON.stringify(outcome));
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
