import { type DiagLogger, DiagLogLevel, diag } from '@opentelemetry/api';
import type { WorkObserver } from '../domain/work-observer.ts';
import type { QueueNames } from './queue-names.ts';
import { SpanObserver } from './span-observer.ts';
import { createSpanWriter } from './span-writer.ts';
import type { SpanWriterOptions } from './types.ts';

const quiet = (): void => {};

/** At the end nobody waits longer for a receiver that does not answer. */
const stopMs = 3000;

/** Writes spans of work, and sends them. */
export function startSpans(
  options: SpanWriterOptions,
  queues: QueueNames,
  log: { warn(fields: object, message: string): void },
): { observer: WorkObserver; stop: () => Promise<void> } {
  const warn = (message: string, ...more: unknown[]): void =>
    log.warn({ error: [message, ...more].map(String).join(' ') }, 'spans: the exporter has a problem');
  const logger: DiagLogger = { error: warn, warn, info: quiet, debug: quiet, verbose: quiet };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const writer = createSpanWriter(options);
  const observer = new SpanObserver(writer, queues, (error) => warn(String(error)));
  return {
    observer,
    stop: async () => {
      await observer.settled();
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, stopMs);
      });
      await Promise.race([writer.stop().catch((error: unknown) => warn(String(error))), late]);
      clearTimeout(timer);
    },
  };
}
