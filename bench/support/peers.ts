import { createRequire } from 'node:module';

/*
 * The peers are packages of bench/ alone, so that nobody who only builds or checks the product has to install them.
 * They are therefore loaded at run time, and what is used of them is typed here.
 */

interface GraphileLogger {
  info(message: string): void;
}
interface GraphileUtils {
  migrate(): Promise<void>;
  addJob(identifier: string, payload: unknown): Promise<unknown>;
  addJobs(jobs: readonly { identifier: string; payload: unknown }[]): Promise<unknown>;
  release(): Promise<void>;
}
export interface GraphilePreset {
  worker: {
    connectionString: string;
    concurrentJobs: number;
    maxPoolSize: number;
    localQueue?: { size: number };
    completeJobBatchDelay?: number;
    failJobBatchDelay?: number;
  };
}
interface GraphileWorker {
  Logger: new (factory: () => () => void) => GraphileLogger;
  makeWorkerUtils(options: {
    connectionString: string;
    maxPoolSize: number;
    logger: GraphileLogger;
  }): Promise<GraphileUtils>;
  run(options: {
    preset: GraphilePreset;
    logger: GraphileLogger;
    noHandleSignals: boolean;
    taskList: Record<string, () => Promise<void>>;
  }): Promise<{ stop(): Promise<void> }>;
}

interface PgBoss {
  on(event: 'error', listener: () => void): void;
  start(): Promise<unknown>;
  stop(options: { graceful: boolean }): Promise<void>;
  createQueue(name: string): Promise<void>;
  insert(jobs: readonly { name: string; data: unknown }[]): Promise<unknown>;
  fetch(name: string, options: { batchSize: number }): Promise<{ id: string }[]>;
  complete(name: string, ids: readonly string[]): Promise<unknown>;
}
type PgBossClass = new (options: { connectionString: string; max: number; schedule: boolean }) => PgBoss;

interface LoadResult {
  requests: { average: number };
  latency: { p50: number; p99: number };
  errors: number;
  non2xx: number;
}
type Autocannon = (options: {
  url: string;
  connections: number;
  duration: number;
  method: 'POST';
  headers: Record<string, string>;
  body: string;
}) => Promise<LoadResult>;

const require = createRequire(import.meta.url);

function load(name: string): unknown {
  try {
    return require(name) as unknown;
  } catch (cause) {
    throw new Error(`${name} is not installed. Run: npm ci --prefix bench`, { cause });
  }
}

export const loadGraphileWorker = (): GraphileWorker => load('graphile-worker') as GraphileWorker;
export const loadPgBoss = (): PgBossClass => load('pg-boss') as PgBossClass;
export const loadAutocannon = (): Autocannon => load('autocannon') as Autocannon;

/** Peers tell their state on the console; here only figures belong there. */
export const silentLogger = ({ Logger }: GraphileWorker): GraphileLogger => new Logger(() => () => {});
