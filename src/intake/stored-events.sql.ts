import type { Queryable } from '../db/pool.ts';
import { toPublicId } from '../domain/ids.ts';
import type { Json } from '../domain/json.ts';
import { InvalidInputError } from '../domain/problems.ts';
import type { StoredEvent } from './fan-out.ts';
import { parseEvent, parseReceivedEvent } from './parse-event.ts';
import { parseMessage } from './parse-message.ts';
import type { RouteRefusal } from './types.ts';

interface EventRow {
  id: string;
  topic: string;
  source: 'GRAPHQL' | 'NATS';
  idempotencyKey: string | null;
  correlationId: string;
  payload: Json;
  /** A message that was no JSON has none. */
  hasPayload: boolean;
  /** Of a rejected message, what is kept of it, and how long it was. */
  raw: Buffer | null;
  rawBytes: number | null;
  customer: string | null;
  labels: Record<string, string>;
  launchedRoutes: string[];
  /** Packed. */
  traceContext: string | null;
}

const readSql = `
select id, topic, source, idempotency_key as "idempotencyKey", correlation_id as "correlationId", payload, payload is not null as "hasPayload",
       raw, (rejection ->> 'bytes')::int as "rawBytes", customer, labels, launched_routes as "launchedRoutes",
       encode(trace_context, 'hex') as "traceContext" from runplane.events where id = $1`;

/** What is stored of an event, as it came; null: there is none. */
export async function readEvent(tx: Queryable, id: string): Promise<EventRow | null> {
  const { rows } = await tx.query<EventRow & Record<string, unknown>>({ text: readSql, values: [id] });
  return rows[0] ?? null;
}

/** Checks a stored event as if it came in now: one that was rejected may be fine by now. Throws InvalidInputError. */
export function parseStoredEvent(row: EventRow): StoredEvent {
  const { id, topic, source, idempotencyKey, correlationId, customer } = row;
  const payload = storedPayload(row);
  if (source === 'NATS') {
    const event = parseReceivedEvent({
      topic,
      payload,
      fallbackKey: idempotencyKey ?? toPublicId('evt', id),
    });
    return { id, correlationId: event.correlationId ?? correlationId, event };
  }
  const event = parseEvent({
    topic,
    payload,
    idempotencyKey,
    // Its own id says that it came without one.
    correlationId: correlationId === toPublicId('evt', id) ? null : correlationId,
    customer,
    labels: Object.entries(row.labels).map(([key, value]) => ({ key, value })),
  });
  return { id, correlationId, event };
}

function storedPayload({ payload, hasPayload, raw, rawBytes }: EventRow): unknown {
  if (hasPayload) return payload;
  if (raw === null || rawBytes === null) {
    throw new InvalidInputError(
      'payload',
      'The payload of this event is no JSON; publish it again, repaired.',
    );
  }
  if (raw.length < rawBytes) {
    throw new InvalidInputError(
      'payload',
      `The message was ${rawBytes} bytes, of which only the first ${raw.length} are kept: publish it again, repaired.`,
    );
  }
  return parseMessage(raw);
}

/** What an event has led to so far. */
export interface EventProgress {
  rejected: boolean;
  refusals: RouteRefusal[];
  launchedRoutes: string[];
  /** Every transaction before it is over: where to watch a run from that is made now. */
  position: bigint;
}

const lockSql = `
select rejection is not null as rejected, refusals, launched_routes as "launchedRoutes",
       pg_snapshot_xmin(pg_current_snapshot())::text as position
  from runplane.events where id = $1 for no key update`;

/** Under the event's lock, so that its routes launch once; null: it is gone. */
export async function lockEvent(tx: Queryable, id: string): Promise<EventProgress | null> {
  const { rows } = await tx.query<Omit<EventProgress, 'position'> & { position: string }>({
    text: lockSql,
    values: [id],
  });
  const [row] = rows;
  return row ? { ...row, position: BigInt(row.position) } : null;
}

const saveSql = `update runplane.events set refusals = $2, launched_routes = $3 where id = $1`;

/** The routes that an event launched and that refused it. */
export async function saveProgress(
  tx: Queryable,
  id: string,
  { refusals, launchedRoutes }: Pick<EventProgress, 'refusals' | 'launchedRoutes'>,
): Promise<void> {
  await tx.query({ text: saveSql, values: [id, JSON.stringify(refusals), launchedRoutes] });
}

const acceptSql = `
with now as materialized (select runplane.clock() as at),
resolved as (
  update runplane.ingest_incidents i set resolved_at = n.at from now n where i.event_id = $1 and i.resolved_at is null)
update runplane.events set rejection = null, raw = null, idempotency_key = $2, correlation_id = $3, payload = $4::jsonb -> 'value'
 where id = $1`;

/** A rejected event is one like any other from now on, and what was wrong with it is over. */
export async function acceptEvent(tx: Queryable, { id, correlationId, event }: StoredEvent): Promise<void> {
  const payload = JSON.stringify({ value: event.payload });
  await tx.query({ text: acceptSql, values: [id, event.key?.text ?? null, correlationId, payload] });
}
