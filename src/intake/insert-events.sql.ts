import type { Queryable } from '../db/pool.ts';
import type { StoredEvent } from './fan-out.ts';
import type { RouteRefusal } from './types.ts';

const insertEventsSql = `
insert into runplane.events (id, topic, idempotency_key, correlation_id, source, payload, customer, labels, refusals, launched_routes, trace_context)
select e.id, e.topic, e.idempotency_key, e.correlation_id, e.source, e.payload -> 'value', e.customer, e.labels, e.refusals, e.launched_routes, decode(e.trace_context, 'hex')
  from json_to_recordset($1::json) as e(id uuid, topic text, idempotency_key text, correlation_id text, source runplane.event_source, payload jsonb,
                                        customer text, labels jsonb, refusals jsonb, launched_routes text[], trace_context text)`;

export interface EventToStore {
  stored: StoredEvent;
  refusals: RouteRefusal[];
  launchedRoutes: string[];
  /** Packed. */
  traceContext: string | undefined;
}

export async function insertEvents(tx: Queryable, events: readonly EventToStore[]): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map(({ stored, refusals, launchedRoutes, traceContext }) => ({
    id: stored.id,
    topic: stored.event.topic,
    idempotency_key: stored.event.key?.text ?? null,
    correlation_id: stored.correlationId,
    source: stored.event.source,
    payload: { value: stored.event.payload },
    customer: stored.event.customer,
    labels: stored.event.labels,
    refusals,
    launched_routes: launchedRoutes,
    trace_context: traceContext,
  }));
  await tx.query({ name: 'insert-events', text: insertEventsSql, values: [JSON.stringify(rows)] });
}

const replayedEventsSql = `
select e.id, e.refusals, array(select r.id from runplane.runs r where r.event_id = e.id and r.parent_run_id is null order by r.route) as "runIds"
  from runplane.events e where e.id = any($1)`;

/** What these events launched when they were stored. */
export async function findReplayedEvents(
  tx: Queryable,
  ids: readonly string[],
): Promise<Map<string, { refusals: RouteRefusal[]; runIds: string[] }>> {
  if (ids.length === 0) return new Map();
  const { rows } = await tx.query<{ id: string; refusals: RouteRefusal[]; runIds: string[] }>({
    name: 'replayed-events',
    text: replayedEventsSql,
    values: [ids],
  });
  return new Map(rows.map(({ id, ...event }) => [id, event]));
}
