import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { failureWithStack } from '../domain/failure.ts';
import { type Attached, attach } from './attach.ts';
import { DeliveryLoop } from './delivery-loop.ts';
import { GivenUp } from './given-up.ts';
import type { IngestContext, Source } from './types.ts';
import { backoffMs, wait } from './wait.ts';
import { StreamWatch } from './watch.ts';

/** Between two looks at a stream. */
const lookMs = 2000;

export interface StreamIngestOptions {
  context: IngestContext;
  source: Source;
  nc: NatsConnection;
  /** Ends it, as the end of the connection does. */
  signal: AbortSignal;
  /** Why it is not read now; null when it is. */
  onProblem: (problem: string | null) => void;
}

/** Takes a stream in over one connection, until it ends: attaches again whenever stream or consumer are gone. */
export async function ingestStream(options: StreamIngestOptions): Promise<void> {
  const { context, source, nc, signal, onProblem } = options;
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  let before = '';
  for (let failures = 0; !signal.aborted; ) {
    try {
      const attached = await attach(context, source, jsm);
      onProblem(attached ? null : 'is missing, ingestStreams says which');
      if (attached) {
        failures = 0;
        before = '';
        await consume(options, jsm, attached);
      }
    } catch (error) {
      if (nc.isClosed()) return;
      onProblem('cannot be read, the log says why');
      const now = failureWithStack(error);
      // Once, and not for as long as it lasts.
      if (now !== before) context.log.warn({ stream: source.stream, error: now }, 'a stream cannot be read');
      before = now;
    }
    await wait(backoffMs(failures++, 5000), signal);
  }
}

async function consume(
  { context, source, nc, signal }: StreamIngestOptions,
  jsm: JetStreamManager,
  attached: Attached,
): Promise<void> {
  const ending = new AbortController();
  const until = AbortSignal.any([signal, ending.signal]);
  const watch = new StreamWatch({ context, source, jsm, attached, signal: until });
  const loop = new DeliveryLoop({
    context,
    source,
    nc,
    attached,
    signal: until,
    onPause: () => watch.forget(),
  });
  const watching = watchUntil(context, source, watch, until, () => ending.abort());
  const reading = new GivenUp(nc, source, context.log).run(watch, until);
  try {
    const why = await loop.run();
    if (!signal.aborted) context.log.warn({ stream: source.stream, why }, 'the consumer is looked for again');
  } finally {
    ending.abort();
    await Promise.all([watching, reading]);
    if (signal.aborted) await watch.leave().catch(() => {});
  }
}

async function watchUntil(
  { log }: IngestContext,
  source: Source,
  watch: StreamWatch,
  until: AbortSignal,
  onMissing: () => void,
): Promise<void> {
  while (!until.aborted) {
    try {
      if ((await watch.look()) === 'MISSING') onMissing();
    } catch (error) {
      watch.forget();
      if (!until.aborted)
        log.warn({ stream: source.stream, error: failureWithStack(error) }, 'a stream cannot be watched');
    }
    await wait(lookMs, until);
  }
}
