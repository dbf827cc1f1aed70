import type { JetStreamManager } from '@nats-io/jetstream';
import { millis } from '@nats-io/transport-node';
import { asTransactions, transaction } from '../db/transaction.ts';
import { newUuid } from '../domain/ids.ts';
import { type Attached, found } from './attach.ts';
import { insertIncidents, resolveIncident } from './incidents.sql.ts';
import { findLoss } from './loss.ts';
import {
  forgetLostEnd,
  leaveWatch,
  lockPosition,
  markHandled,
  type Position,
  readPosition,
  type Seen,
  saveOldest,
  saveSeen,
  takeWatch,
} from './positions.sql.ts';
import { holesOf, type Range, rangesOf, within } from './ranges.ts';
import { readMessage, readRanges } from './stored-messages.ts';
import { takeIn } from './take-in.ts';
import { type IngestContext, nakMs, type Source, type StreamMessage } from './types.ts';

/** Requests by which one look reads messages by their numbers, at most: it ends before it has to be taken over. */
const readAtOnce = 200;
/** The share of the stream's max_age at which a message that waits is warned of. */
const warnAt = 0.5;

/** After that a message was delivered as often as it may be. */
const exhaustedMs = (source: Source): number =>
  source.ackWaitSeconds * 2000 + source.maxDeliver * nakMs(source);

/** What a look found. MISSING: stream or consumer are not those that were attached to. */
export type Look = 'WATCHED' | 'ELSEWHERE' | 'MISSING';

export interface WatchOptions {
  context: IngestContext;
  source: Source;
  jsm: JetStreamManager;
  attached: Attached;
  /** Nothing more is read then. */
  signal: AbortSignal;
}

/**
 * Looks at a stream from time to time, one replica for all: keeps what the broker shows, and sees to it that every message
 * is accounted for. What the consumer does not deliver any more is read by its number, and what the stream no longer has
 * becomes an incident.
 */
export class StreamWatch {
  readonly #options: WatchOptions;
  readonly #watcher = newUuid();
  /** How far messages were delivered, at times of this process. */
  #samples: { at: number; delivered: number }[] = [];
  #oldest: StreamMessage | null = null;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** Nothing was fetched: what was delivered before had no time to be handled. */
  forget(): void {
    this.#samples = [];
  }

  async look(): Promise<Look> {
    const { context, source, jsm } = this.#options;
    if (!(await takeWatch(context.db, source, this.#watcher))) {
      this.forget();
      return 'ELSEWHERE';
    }
    const known = await readPosition(context.db, source);
    // In this order: a message that is gone by now, and not delivered later than that, never will be.
    const stream = await found(jsm.streams.info(source.stream));
    const consumer = stream && (await found(jsm.consumers.info(source.stream, source.consumer)));
    if (!stream || !consumer || stream.created !== this.#options.attached.streamCreated) return 'MISSING';
    const { config, state } = stream;
    const seen: Seen = {
      streamCreated: stream.created,
      subjects: config.subjects ?? [],
      ackWaitSeconds: millis(consumer.config.ack_wait ?? 0) / 1000,
      maxDeliver: consumer.config.max_deliver ?? -1,
      maxAgeSeconds: config.max_age ? millis(config.max_age) / 1000 : null,
      lastSequence: state.last_seq,
      delivered: consumer.delivered.stream_seq,
      pending: consumer.num_pending,
      unacknowledged: consumer.num_ack_pending,
      redelivered: consumer.num_redelivered,
    };
    await forgetLostEnd(asTransactions(context.db), source, known, stream, state.last_seq);
    const position = await saveSeen(context.db, source, this.#watcher, seen);
    if (!position) return 'MISSING';
    const now = performance.now();
    this.#samples.push({ at: now, delivered: position.deliveredSequence });
    const oldest = this.#samples.findLastIndex(({ at }) => at <= now - exhaustedMs(source));
    if (oldest > 0) this.#samples.splice(0, oldest);
    const loss = findLoss({
      holes: holesOf(position.handled, state.last_seq),
      firstSequence: state.first_seq,
      delivered: position.deliveredSequence,
      worked: this.#deliveredBefore(source.ackWaitSeconds * 1000),
      exhausted: this.#deliveredBefore(exhaustedMs(source)),
    });
    await this.#reportLost(loss.lost);
    await this.readAgain(loss.abandoned, 'Its delivery ended without a word of the broker.');
    await this.#watchAge(position, state.first_seq, seen);
    return 'WATCHED';
  }

  async leave(): Promise<void> {
    await leaveWatch(this.#options.context.db, this.#options.source, this.#watcher);
  }

  /** Takes in by their numbers what the consumer gave up, and tells what of it is gone: as much as one look may. */
  async readAgain(ranges: readonly Range[], why: string): Promise<void> {
    const { context, source, jsm, attached, signal } = this.#options;
    const read = (from: number) => readMessage(jsm, source.stream, from);
    const { messages, gone } = await readRanges(read, ranges, readAtOnce, signal);
    await this.#reportLost(gone);
    const taken = await takeIn(context, source, attached.streamCreated, messages, () => true);
    // While there is no database, nothing is told: the next look finds it again.
    const done = new Map(
      messages.flatMap(({ sequence }, i) => {
        const each = taken[i];
        return each && each.kind !== 'AGAIN' ? [[sequence, each.eventId] as const] : [];
      }),
    );
    const incidents = rangesOf(done.keys()).map(({ from, to }) => ({
      kind: 'MAX_DELIVER' as const,
      from,
      to,
      detail: `${why} It was read by its number, and is stored or kept as a rejected event.`,
      eventId: from === to ? done.get(from) : null,
      isOver: true,
    }));
    await transaction(context.db, (tx) => insertIncidents(tx, source, incidents));
  }

  /** How far messages were delivered so long ago, as far as it was watched. */
  #deliveredBefore(ms: number): number {
    const until = performance.now() - ms;
    return this.#samples.findLast(({ at }) => at <= until)?.delivered ?? 0;
  }

  /** Under the lock of the position: what is handled by now is not lost. */
  async #reportLost(ranges: readonly Range[]): Promise<void> {
    if (ranges.length === 0) return;
    const { context, source, attached } = this.#options;
    const lost = await transaction(context.db, async (tx) => {
      const { handled, streamCreated } = await lockPosition(tx, source);
      if (streamCreated !== attached.streamCreated) return [];
      const holes = holesOf(handled, ranges.at(-1)?.to ?? 0);
      const parts = ranges.flatMap(({ from, to }) => within(holes, from, to));
      const detail = 'Age, limits or somebody removed these messages from the stream before they were read.';
      await insertIncidents(
        tx,
        source,
        parts.map((part) => ({ kind: 'GAP', ...part, detail })),
      );
      await markHandled(tx, source, attached.streamCreated, parts);
      return parts;
    });
    if (lost.length > 0) context.log.error({ stream: source.stream, lost }, 'messages were lost');
  }

  /** Warns while the stream is going to remove what waits. */
  async #watchAge(position: Position, firstSequence: number, seen: Seen): Promise<void> {
    const { context, source, jsm } = this.#options;
    const { db } = context;
    const [hole] = within(holesOf(position.handled, seen.lastSequence), firstSequence, seen.lastSequence);
    if (!hole) this.#oldest = null;
    else if (this.#oldest?.sequence !== hole.from)
      this.#oldest = await readMessage(jsm, source.stream, hole.from);
    const oldest = this.#oldest && this.#oldest.sequence <= (hole?.to ?? 0) ? this.#oldest : null;
    const storedAt = oldest && new Date(Number(oldest.storedAt / 1_000_000n));
    const ageSeconds = await saveOldest(db, source, storedAt);
    const { maxAgeSeconds } = seen;
    if (!oldest || ageSeconds === null || maxAgeSeconds === null || ageSeconds < maxAgeSeconds * warnAt) {
      await transaction(db, (tx) => resolveIncident(tx, source, 'AGE_WARNING'));
      return;
    }
    const detail = `The stream keeps messages for ${maxAgeSeconds} s, and the oldest that waits is ${Math.round(ageSeconds)} s old.`;
    const incident = { kind: 'AGE_WARNING' as const, from: oldest.sequence, to: seen.lastSequence, detail };
    if ((await transaction(db, (tx) => insertIncidents(tx, source, [incident]))) > 0)
      context.log.warn({ stream: source.stream, ageSeconds, maxAgeSeconds }, 'messages are about to be lost');
  }
}
