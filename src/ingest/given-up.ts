import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { failureWithStack } from '../domain/failure.ts';
import { rangesOf } from './ranges.ts';
import type { IngestLog, Source } from './types.ts';
import { backoffMs, wait } from './wait.ts';
import type { StreamWatch } from './watch.ts';

/** Of what was given up, so many are read at once. */
const atOnce = 200;

/**
 * Reads the messages that the broker says it gave up. It says so once, to one replica, and not to whoever is away: the
 * watch finds the rest.
 */
export class GivenUp {
  readonly #source: Source;
  readonly #log: IngestLog;
  readonly #advisories: Subscription;
  readonly #sequences = new Set<number>();
  #wake: () => void = () => {};

  constructor(nc: NatsConnection, source: Source, log: IngestLog) {
    this.#source = source;
    this.#log = log;
    const { stream, consumer } = source;
    this.#advisories = nc.subscribe(`$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.${consumer}`, {
      queue: 'runplane',
      callback: (error, advisory) => {
        // Whoever may not subscribe to them, say.
        if (error) log.warn({ stream, error: error.message }, 'what the broker gives up is noticed late');
        else this.#told(advisory);
      },
    });
  }

  /** Until the signal aborts; what is left then is left to the watch. */
  async run(watch: StreamWatch, signal: AbortSignal): Promise<void> {
    const onAbort = (): void => this.#wake();
    signal.addEventListener('abort', onAbort);
    for (let failures = 0; !signal.aborted; ) {
      if (this.#sequences.size === 0) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      const some = [...this.#sequences].slice(0, atOnce);
      try {
        await watch.readAgain(rangesOf(some), 'It was delivered as often as it may be, in vain.');
        for (const sequence of some) this.#sequences.delete(sequence);
        failures = 0;
      } catch (error) {
        const fields = { stream: this.#source.stream, error: failureWithStack(error) };
        if (!signal.aborted) this.#log.warn(fields, 'what the broker gave up cannot be read');
        await wait(backoffMs(failures++), signal);
      }
    }
    signal.removeEventListener('abort', onAbort);
    this.#advisories.unsubscribe();
  }

  #told(advisory: Msg): void {
    this.#sequences.add(advisory.json<{ stream_seq: number }>().stream_seq);
    this.#wake();
  }
}
