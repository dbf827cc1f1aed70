import type { StreamInfo } from '@nats-io/jetstream';
import type { Database, Queryable } from '../db/pool.ts';
import { statement } from '../db/transaction.ts';
import { formatRanges, parseRanges, type Range } from './ranges.ts';
import type { Source } from './types.ts';

/** How far a stream is taken in. */
export interface Position {
  /** Null: it was never seen. */
  streamCreated: string | null;
  consumerCreated: string | null;
  handled: Range[];
  deliveredSequence: number;
  /** The last message of the stream, when it was last looked at. */
  lastSequence: number | null;
  /** The last message that is known of the stream: the last that was seen, or one after it that was handled. */
  end: number;
}

type PositionRow = Omit<Position, 'handled'> & { handled: string };

const createSql = `
insert into runplane.ingest_streams (stream, consumer, ack_wait_seconds, max_deliver) values ($1, $2, $3, $4)
on conflict (stream, consumer) do nothing`;

export async function createPosition(db: Database, source: Source): Promise<void> {
  const { stream, consumer, ackWaitSeconds, maxDeliver } = source;
  await statement(db, { text: createSql, values: [stream, consumer, ackWaitSeconds, maxDeliver] });
}

const endSql = `coalesce(greatest(s.last_sequence, upper(s.handled) - 1), 0)`;

const positionSql = `
select s.stream_created as "streamCreated", s.consumer_created as "consumerCreated", s.handled::text,
       s.delivered_sequence as "deliveredSequence", s.last_sequence as "lastSequence", ${endSql} as "end"
  from runplane.ingest_streams s where s.stream = $1 and s.consumer = $2`;

/** As it is before the broker is asked. */
export async function readPosition(db: Database, source: Source): Promise<Position> {
  const { stream, consumer } = source;
  return positionOf(await statement(db, { text: positionSql, values: [stream, consumer] }), source);
}

/** Under a lock that those who mark messages wait for. */
export async function lockPosition(tx: Queryable, source: Source): Promise<Position> {
  const { stream, consumer } = source;
  return positionOf(
    await tx.query({ text: `${positionSql} for no key update`, values: [stream, consumer] }),
    source,
  );
}

function positionOf({ rows: [row] }: { rows: PositionRow[] }, { stream, consumer }: Source): Position {
  if (!row) throw new Error(`There is no row for stream ${stream} and consumer ${consumer}.`);
  return { ...row, handled: parseRanges(row.handled) };
}

// Not when another replica has noticed it meanwhile: what is handled since then are other messages.
const cutSql = `
update runplane.ingest_streams s
   set handled = s.handled * int8multirange(int8range(1, $6::int8 + 1)), last_sequence = $4, delivered_sequence = least(s.delivered_sequence, $6)
 where s.stream = $1 and s.consumer = $2 and s.stream_created = $3 and ${endSql} >= $5`;

/**
 * A stream whose end is before the one that was known when the broker was asked has lost messages in a crash, and gives
 * their numbers again: from which one on, nobody knows. Of what was handled, numbers through `kept` stay so.
 */
export async function forgetLostEnd(
  tx: Queryable,
  { stream, consumer }: Source,
  known: Position,
  { created, state }: StreamInfo,
  kept: number,
): Promise<void> {
  if (known.streamCreated !== created || state.last_seq >= known.end) return;
  await tx.query({
    text: cutSql,
    values: [stream, consumer, created, state.last_seq, known.end, kept],
  });
}

const beginSql = `
update runplane.ingest_streams
   set stream_created = $3, consumer_created = null, handled = $4::int8multirange, delivered_sequence = 0, last_sequence = null
 where stream = $1 and consumer = $2`;

/** The stream is there for the first time, or anew. */
export async function beginStream(
  tx: Queryable,
  { stream, consumer }: Source,
  streamCreated: string,
  handled: readonly Range[],
): Promise<void> {
  await tx.query({ text: beginSql, values: [stream, consumer, streamCreated, formatRanges(handled)] });
}

const attachSql = `
update runplane.ingest_streams set consumer_created = $3 where stream = $1 and consumer = $2`;

export async function saveConsumer(
  tx: Queryable,
  { stream, consumer }: Source,
  consumerCreated: string | null,
): Promise<void> {
  await tx.query({ text: attachSql, values: [stream, consumer, consumerCreated] });
}

// Of a stream that was made anew meanwhile, the numbers mean other messages.
const markSql = `
update runplane.ingest_streams
   set handled = handled + $4::int8multirange, delivered_sequence = greatest(delivered_sequence, upper($4::int8multirange) - 1)
 where stream = $1 and consumer = $2 and stream_created = $3`;

/** These messages are stored, refused visibly, or known to be lost. False: there is another stream of that name by now. */
export async function markHandled(
  tx: Queryable,
  { stream, consumer }: Source,
  streamCreated: string,
  ranges: readonly Range[],
): Promise<boolean> {
  if (ranges.length === 0) return true;
  const { rowCount } = await tx.query({
    name: 'mark-handled',
    text: markSql,
    values: [stream, consumer, streamCreated, formatRanges(ranges)],
  });
  return rowCount === 1;
}

/** A replica that was not heard of for so long does not watch any more. */
const watchSeconds = 10;

const watchSql = `
with now as materialized (select runplane.clock() as at)
update runplane.ingest_streams s set watcher = $3, watched_until = n.at + make_interval(secs => ${watchSeconds}) from now n
 where s.stream = $1 and s.consumer = $2 and (s.watcher = $3 or s.watched_until is null or s.watched_until < n.at)
returning true as mine`;

/** Whether this replica watches the stream for all, until it is silent for some seconds. */
export async function takeWatch(
  db: Database,
  { stream, consumer }: Source,
  watcher: string,
): Promise<boolean> {
  const { rows } = await statement(db, {
    name: 'take-watch',
    text: watchSql,
    values: [stream, consumer, watcher],
  });
  return rows.length > 0;
}

const leaveSql = `
update runplane.ingest_streams set watcher = null, watched_until = null, seen_at = null
 where stream = $1 and consumer = $2 and watcher = $3`;

/** Another replica may watch at once. */
export async function leaveWatch(db: Database, { stream, consumer }: Source, watcher: string): Promise<void> {
  await statement(db, { text: leaveSql, values: [stream, consumer, watcher] });
}

/** A stream as the broker shows it. */
export interface Seen {
  streamCreated: string;
  subjects: readonly string[];
  ackWaitSeconds: number;
  maxDeliver: number;
  maxAgeSeconds: number | null;
  lastSequence: number;
  delivered: number;
  pending: number;
  unacknowledged: number;
  redelivered: number;
}

const seenSql = `
update runplane.ingest_streams s
   set seen_at = runplane.clock(), subjects = $5, ack_wait_seconds = $6, max_deliver = $7, max_age_seconds = $8, last_sequence = $9,
       pending = $11, unacknowledged = $12, redelivered = $13,
       delivered_sequence = greatest(s.delivered_sequence, $10)
 where s.stream = $1 and s.consumer = $2 and s.stream_created = $3 and s.watcher = $4
returning s.stream_created as "streamCreated", s.consumer_created as "consumerCreated", s.handled::text,
          s.delivered_sequence as "deliveredSequence", s.last_sequence as "lastSequence", ${endSql} as "end"`;

/** Keeps what was seen; answers how far the stream is taken in. Null: it is another stream, or another replica watches. */
export async function saveSeen(
  db: Database,
  { stream, consumer }: Source,
  watcher: string,
  seen: Seen,
): Promise<Position | null> {
  const { rows } = await statement<PositionRow>(db, {
    name: 'save-seen-stream',
    text: seenSql,
    values: [
      stream,
      consumer,
      seen.streamCreated,
      watcher,
      seen.subjects,
      seen.ackWaitSeconds,
      seen.maxDeliver,
      seen.maxAgeSeconds,
      seen.lastSequence,
      seen.delivered,
      seen.pending,
      seen.unacknowledged,
      seen.redelivered,
    ],
  });
  const [row] = rows;
  return row ? { ...row, handled: parseRanges(row.handled) } : null;
}

const oldestSql = `
with now as materialized (select runplane.clock() as at)
update runplane.ingest_streams s set oldest_pending_at = $3 from now n where s.stream = $1 and s.consumer = $2
returning extract(epoch from n.at - s.oldest_pending_at)::float8 as age`;

/** Keeps when the oldest message that waits was stored by the broker; answers how old it is, in seconds. */
export async function saveOldest(
  db: Database,
  { stream, consumer }: Source,
  oldest: Date | null,
): Promise<number | null> {
  const { rows } = await statement<{ age: number | null }>(db, {
    name: 'save-oldest',
    text: oldestSql,
    values: [stream, consumer, oldest],
  });
  return rows[0]?.age ?? null;
}
