import type { Queryable } from '../db/pool.ts';
import { packTraceContext, type TraceContext } from '../domain/trace-context.ts';

/** A message that is no event, kept for people to see and repair. */
export interface RejectedEvent {
  /** The same for each delivery of the message. */
  id: string;
  topic: string;
  /** What it would be, were it accepted: the key where its payload names none. */
  idempotencyKey: string | null;
  correlationId: string;
  traceContext: TraceContext | null;
  code: string;
  message: string;
  raw: Buffer;
  /** Of the whole message. */
  bytes: number;
}

const insertSql = `
with now as materialized (select runplane.clock() as at)
insert into runplane.events (id, topic, idempotency_key, correlation_id, source, raw, rejection, trace_context)
select e.id, e.topic, e.idempotency_key, e.correlation_id, 'NATS', decode(e.raw, 'base64'),
       json_build_object('code', e.code, 'message', e.message, 'at', n.at, 'bytes', e.bytes), decode(e.trace_context, 'hex')
  from json_to_recordset($1::json) as e(id uuid, topic text, idempotency_key text, correlation_id text, code text, message text, raw text, bytes int, trace_context text)
  cross join now n
 order by e.id
on conflict (id) do nothing
returning id`;

/** Stores what was not stored before; answers the ids of these. */
export async function insertRejected(tx: Queryable, events: readonly RejectedEvent[]): Promise<Set<string>> {
  if (events.length === 0) return new Set();
  const records = events.map(({ idempotencyKey, correlationId, traceContext, raw, ...event }) => ({
    ...event,
    idempotency_key: idempotencyKey,
    correlation_id: correlationId,
    trace_context: traceContext ? packTraceContext(traceContext) : undefined,
    raw: raw.toString('base64'),
  }));
  const { rows } = await tx.query<{ id: string }>({
    name: 'insert-rejected-events',
    text: insertSql,
    values: [JSON.stringify(records)],
  });
  return new Set(rows.map(({ id }) => id));
}
