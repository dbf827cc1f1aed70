import {
  AckPolicy,
  type ConsumerInfo,
  DeliverPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  RetentionPolicy,
  type StreamInfo,
} from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { transaction } from '../db/transaction.ts';
import { insertIncidents, resolveIncident } from './incidents.sql.ts';
import {
  beginStream,
  createPosition,
  forgetLostEnd,
  lockPosition,
  type Position,
  readPosition,
  saveConsumer,
} from './positions.sql.ts';
import { everythingBefore, firstHole, holesOf, type Range } from './ranges.ts';
import type { Incident, IngestContext, Source } from './types.ts';

/** A consumer that can be pulled from. */
export interface Attached {
  /** Tells the stream from one of the same name that is made later. */
  streamCreated: string;
}

/** Finds the stream and its consumer, and makes the consumer where it is missing. Null: there is no such stream. */
export async function attach(
  context: IngestContext,
  source: Source,
  jsm: JetStreamManager,
): Promise<Attached | null> {
  const { db, log } = context;
  await createPosition(db, source);
  // Before the broker is asked: what another replica does meanwhile is no surprise.
  const known = await readPosition(db, source);
  const stream = await found(jsm.streams.info(source.stream));
  if (!stream) {
    const detail = `There is no stream ${source.stream}. It is awaited; \`runplane nats setup\` creates it.`;
    const incident: Incident = { kind: 'STREAM_MISSING', from: null, to: null, detail };
    if ((await transaction(db, (tx) => insertIncidents(tx, source, [incident]))) > 0)
      log.warn({ stream: source.stream }, 'the stream is missing and is awaited');
    return null;
  }
  const consumer = await found(jsm.consumers.info(source.stream, source.consumer));
  const start = await findStart(context, source, stream, consumer, known);
  const ready = consumer
    ? await adjusted(context, source, jsm, consumer)
    : await jsm.consumers.add(source.stream, {
        durable_name: source.consumer,
        ack_policy: AckPolicy.Explicit,
        ack_wait: nanos(source.ackWaitSeconds * 1000),
        max_deliver: source.maxDeliver,
        // Such streams do not keep what is acknowledged, and let consumers begin nowhere else.
        ...(stream.config.retention === RetentionPolicy.Workqueue || start <= 1
          ? { deliver_policy: DeliverPolicy.All }
          : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: start }),
      });
  await transaction(db, async (tx) => {
    await saveConsumer(tx, source, ready.created);
    await resolveIncident(tx, source, 'STREAM_MISSING');
  });
  return { streamCreated: stream.created };
}

/** Compares with what is known of the stream, and writes down what is lost with an older one; answers where to begin. */
function findStart(
  { db, log }: IngestContext,
  source: Source,
  stream: StreamInfo,
  consumer: ConsumerInfo | null,
  known: Position,
): Promise<number> {
  return transaction(db, async (tx) => {
    const { first_seq, last_seq } = stream.state;
    // A consumer that is there delivers what gets the numbers. Without it all is read again, and found by its keys.
    await forgetLostEnd(tx, source, known, stream, consumer ? last_seq : first_seq - 1);
    const position = await lockPosition(tx, source);
    if (position.streamCreated === stream.created) {
      const start = firstHole(position.handled);
      const missed = known.consumerCreated;
      if (!consumer && missed !== null && position.consumerCreated === missed) {
        const detail = `The consumer ${source.consumer} was gone. It is made again, from message ${start} on.`;
        await insertIncidents(tx, source, [
          { kind: 'CONSUMER_MISSING', from: start, to: null, detail, isOver: true },
        ]);
        // Another replica that finds it gone as well has nothing to add.
        await saveConsumer(tx, source, null);
        log.warn({ stream: source.stream, consumer: source.consumer, start }, 'the consumer is made again');
      }
      return start;
    }
    if (position.streamCreated === null) {
      const handled = everythingBefore(consumer ? firstOf(consumer, stream) : stream.state.first_seq);
      await beginStream(tx, source, stream.created, handled);
      return firstHole(handled);
    }
    const lost = holesOf(position.handled, position.lastSequence ?? 0);
    const detail =
      'The stream was deleted, and made again, before these messages of the old one were read. There may have been more after the last that was seen.';
    await insertIncidents(
      tx,
      source,
      lost.map((range) => ({ kind: 'GAP', ...range, detail })),
    );
    log.warn({ stream: source.stream, lost }, 'the stream is another one, of the same name');
    // What a new stream does not have any more is lost, unless its numbers began later.
    const handled: Range[] = everythingBefore(stream.config.first_seq ?? 1);
    await beginStream(tx, source, stream.created, handled);
    return firstHole(handled);
  });
}

/** The first message that a consumer has yet to see handled, of one that was there before we came. */
const firstOf = ({ ack_floor, delivered, num_pending }: ConsumerInfo, { state }: StreamInfo): number =>
  Math.max(ack_floor.stream_seq + 1, delivered.stream_seq === 0 ? state.last_seq - num_pending + 1 : 1);

/** A consumer that is there, as the settings want it. */
async function adjusted(
  { log }: IngestContext,
  source: Source,
  jsm: JetStreamManager,
  existing: ConsumerInfo,
): Promise<ConsumerInfo> {
  const { config } = existing;
  const { ack_policy, deliver_subject, filter_subject, filter_subjects, headers_only } = config;
  const hasFilter = filter_subject || filter_subjects?.length;
  if (ack_policy !== AckPolicy.Explicit || deliver_subject || hasFilter || headers_only) {
    throw new Error(
      `Consumer ${source.consumer} of stream ${source.stream} is no pull consumer of all its messages, with their content and explicit acknowledgement: delete it, or set NATS_CONSUMER to another name.`,
    );
  }
  const wanted = { ack_wait: nanos(source.ackWaitSeconds * 1000), max_deliver: source.maxDeliver };
  if (config.ack_wait === wanted.ack_wait && config.max_deliver === wanted.max_deliver) return existing;
  const before = { ack_wait: config.ack_wait, max_deliver: config.max_deliver };
  log.info({ stream: source.stream, before, after: wanted }, 'the consumer is changed, as it is set');
  return jsm.consumers.update(source.stream, source.consumer, wanted);
}

/** What there is; null when the broker says that there is no such thing. */
export async function found<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof JetStreamApiError && isNotFound(error)) return null;
    throw error;
  }
}

const isNotFound = ({ code }: JetStreamApiError): boolean =>
  code === JetStreamApiCodes.StreamNotFound || code === JetStreamApiCodes.ConsumerNotFound;
