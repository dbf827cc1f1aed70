import { randomUUID } from 'node:crypto';
import type { Queryable } from '../db/pool.ts';
import { failureWithStack } from '../domain/failure.ts';
import type { WorkObserver } from '../domain/work-observer.ts';
import type { TelemetryConfig } from '../telemetry-config.ts';
import { LogObserver } from './log-observer.ts';
import { bothObservers, carefully } from './observers.ts';
import { QueueNames } from './queue-names.ts';

export interface TelemetryOptions {
  /** Null: no spans. */
  config: TelemetryConfig | null;
  version: string;
  /** Where names are looked up, once there is work. */
  db: () => Queryable;
  /** debug is there when lines of that level are written. */
  log: {
    warn(fields: object, message: string): void;
    debug?: ((fields: object, message: string) => void) | null;
  };
}

export interface Telemetry {
  /** Null: nobody hears of work. */
  observer: WorkObserver | null;
  /** Sends the spans that were not sent yet. */
  stop(): Promise<void>;
}

/** What hears of work in this process: spans, lines of the log, both or none. Without spans, nothing of their SDK is loaded. */
export async function startTelemetry({ config, version, db, log }: TelemetryOptions): Promise<Telemetry> {
  const warn = (error: unknown): void =>
    log.warn({ error: failureWithStack(error) }, 'work could not be told of');
  const { debug } = log;
  const lines = debug ? new LogObserver({ debug }) : null;
  if (!config) return { observer: lines && carefully(lines, warn), stop: async () => {} };
  const { startSpans } = await import('./spans.ts');
  const spans = startSpans({ config, version, instanceId: randomUUID() }, new QueueNames(db), log);
  const observer = lines ? bothObservers(spans.observer, lines) : spans.observer;
  return { observer: carefully(observer, warn), stop: spans.stop };
}
