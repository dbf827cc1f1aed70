import { hostname } from 'node:os';
import type { NatsConnection } from '@nats-io/transport-node';
import { failureText, failureWithStack } from '../domain/failure.ts';
import type { NatsConfig } from '../nats-config.ts';
import { connectTo, hostsOf } from './connection.ts';
import { createPosition } from './positions.sql.ts';
import { ingestStream } from './stream-ingest.ts';
import type { IngestContext, Source } from './types.ts';
import { backoffMs, wait } from './wait.ts';

export interface Ingest {
  /** Why events do not come in; empty when they do. Anybody may read it. */
  notReady(): string[];
  /** Fetches nothing more, and settles when what was fetched is stored or handed back. */
  stop(): Promise<void>;
}

/** Takes events in from the streams of a broker, for as long as the process runs, whether the broker is there or not. */
export function startIngest(config: NatsConfig, context: IngestContext): Ingest {
  const stopping = new AbortController();
  const { signal } = stopping;
  const { log } = context;
  const { consumer, ackWaitSeconds, maxDeliver, batch } = config;
  const sources = config.streams.map(
    (stream): Source => ({ stream, consumer, ackWaitSeconds, maxDeliver, batch }),
  );
  const problems = new Map<string, string | null>();
  let isConnected = false;

  const serve = async (nc: NatsConnection): Promise<void> => {
    const lost = new AbortController();
    const ended = nc.closed().then((error) => {
      lost.abort();
      if (!signal.aborted) log.warn({ error: String(error ?? 'closed') }, 'the connection to NATS is lost');
    });
    const until = AbortSignal.any([signal, lost.signal]);
    try {
      await Promise.all(
        sources.map((source) =>
          ingestStream({
            context,
            source,
            nc,
            signal: until,
            onProblem: (problem) => problems.set(source.stream, problem),
          }),
        ),
      );
      // What was acknowledged last is still on its way.
      if (!nc.isClosed()) await nc.flush().catch(() => {});
    } finally {
      await nc.close();
      await ended;
    }
  };

  const run = async (): Promise<void> => {
    let before = '';
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        const nc = await connectTo(config, `runplane ${hostname()}/${process.pid}`);
        log.info({ server: nc.getServer(), version: nc.info?.version }, 'connected to NATS');
        isConnected = true;
        failures = 0;
        before = '';
        await serve(nc);
      } catch (error) {
        const now = failureText(error);
        // Once, and not for as long as it lasts.
        if (now !== before)
          log.warn({ servers: hostsOf(config), error: now }, 'NATS cannot be reached, which is tried again');
        before = now;
      }
      isConnected = false;
      await wait(backoffMs(failures), signal);
    }
  };
  // The streams are shown though the broker was never reached.
  const announced = Promise.all(sources.map((source) => createPosition(context.db, source))).catch(
    (error: unknown) => log.warn({ error: failureWithStack(error) }, 'the streams cannot be announced'),
  );
  const running = Promise.all([announced, run()]);

  return {
    notReady: () => {
      if (!isConnected) return ['nats: not connected, which is tried again; the log says why'];
      return [...new Set(problems.values())].flatMap((problem) =>
        problem === null ? [] : [`nats: a stream ${problem}`],
      );
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
