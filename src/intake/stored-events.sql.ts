import type { Queryable } from '../db/pool.ts';
import { toPublicId } from '../domain/ids.ts';
import type { Json } from '../domain/json.ts';
import { InvalidInputError } from '../domain/problems.ts';
import type { StoredEvent } from './fan-out.ts';
import { parseEvent } from './parse-event.ts';
import type { RouteRefusal } from './types.ts';

interface EventRow {
  id: string;
  topic: string;
  idempotencyKey: string | null;
  correlationId: string;
  payload: Json;
  /** A message that was no JSON has none. */
  hasPayload: boolean;
  customer: string | null;
  labels: Record<string, string>;
  launchedRoutes: string[];
}

const readSql = `
select id, topic, idempotency_key as "idempotencyKey", correlation_id as "correlationId", payload, payload is not null as "hasPayload",
       customer, labels, launched_routes as "launchedRoutes" from runplane.events where id = $1`;

/** What is stored of an event, as it came; null: there is none. */
export async function readEvent(tx: Queryable, id: string): Promise<EventRow | null> {
  const { rows } = await tx.query<EventRow & Record<string, unknown>>({ text: readSql, values: [id] });
  return rows[0] ?? null;
}

/** Checks a stored event as if it came in now: one that was rejected may be fine by now. Throws InvalidInputError. */
export function parseStoredEvent(row: EventRow): StoredEvent {
  const { id, topic, idempotencyKey, correlationId, customer } = row;
  if (!row.hasPayload)
    throw new InvalidInputError(
      'payload',
      'The payload of this event is no JSON; publish it again, repaired.',
    );
  const event = parseEvent({
    topic,
    payload: row.payload,
    idempotencyKey,
    // Its own id says that it came without one.
    correlationId: correlationId === toPublicId('evt', id) ? null : correlationId,
    customer,
    labels: Object.entries(row.labels).map(([key, value]) => ({ key, value })),
  });
  return { id, correlationId, event };
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

const acceptSql = `
update runplane.events set rejection = null, refusals = $2, launched_routes = $3 where id = $1`;

/** The event is accepted, with these routes launched and refused. */
export async function saveProgress(
  tx: Queryable,
  id: string,
  { refusals, launchedRoutes }: Pick<EventProgress, 'refusals' | 'launchedRoutes'>,
): Promise<void> {
  await tx.query({ text: acceptSql, values: [id, JSON.stringify(refusals), launchedRoutes] });
}
