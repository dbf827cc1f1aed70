import { sql } from 'drizzle-orm';
import {
  check,
  customType,
  doublePrecision,
  index,
  integer,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { at, count, id, runplane } from './types.ts';

/** Ranges of sequence numbers. */
const int8multirange = customType<{ data: string }>({ dataType: () => 'int8multirange' });

/** The streams of a broker that events come from: what was taken in of each, and how the broker last showed it. */
export const ingestStreams = runplane.table(
  'ingest_streams',
  {
    stream: text('stream').notNull(),
    /** The durable consumer: two of them read the stream apart. */
    consumer: text('consumer').notNull(),
    /** As the broker writes it. A stream that is made again has another one, and numbers its messages anew. Null: not seen yet. */
    streamCreated: text('stream_created'),
    consumerCreated: text('consumer_created'),
    /** Every message that is stored, refused visibly, or known to be lost. */
    handled: int8multirange('handled').notNull().default('{}'),
    /** The last message that was ever delivered. */
    deliveredSequence: count('delivered_sequence').notNull().default(0),
    subjects: text('subjects').array().notNull().default([]),
    ackWaitSeconds: doublePrecision('ack_wait_seconds').notNull(),
    maxDeliver: integer('max_deliver').notNull(),
    maxAgeSeconds: doublePrecision('max_age_seconds'),
    lastSequence: count('last_sequence'),
    pending: count('pending'),
    unacknowledged: count('unacknowledged'),
    redelivered: count('redelivered'),
    oldestPendingAt: at('oldest_pending_at'),
    /** When a replica last heard of the broker. */
    seenAt: at('seen_at'),
    /** The replica that watches the stream for all, and until when. */
    watcher: id('watcher'),
    watchedUntil: at('watched_until'),
  },
  (t) => [primaryKey({ columns: [t.stream, t.consumer] })],
);

/** What went wrong with a stream. */
export const ingestIncidents = runplane.table(
  'ingest_incidents',
  {
    id: id().primaryKey(),
    stream: text('stream').notNull(),
    consumer: text('consumer').notNull(),
    at: at('at').notNull().default(sql`runplane.clock()`),
    kind: text('kind').notNull(),
    fromSequence: count('from_sequence'),
    toSequence: count('to_sequence'),
    detail: text('detail').notNull(),
    eventId: id('event_id'),
    resolvedAt: at('resolved_at'),
  },
  (t) => [
    index('ingest_incidents_by_stream').on(t.stream, t.consumer, t.id),
    index('ingest_incidents_by_event').on(t.eventId).where(sql`${t.eventId} is not null`),
    // Of what lasts, one at a time.
    uniqueIndex('ingest_incidents_lasting')
      .on(t.stream, t.consumer, t.kind)
      .where(sql`${t.resolvedAt} is null and ${t.kind} in ('STREAM_MISSING', 'AGE_WARNING')`),
    check(
      'ingest_incidents_kind',
      sql`${t.kind} in ('GAP', 'POISON', 'MAX_DELIVER', 'CONFLICT', 'STREAM_MISSING', 'CONSUMER_MISSING', 'AGE_WARNING')`,
    ),
    check('ingest_incidents_range', sql`${t.fromSequence} <= ${t.toSequence}`),
  ],
);
