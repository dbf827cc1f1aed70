import type { Queryable } from '../db/pool.ts';
import { newUuid } from '../domain/ids.ts';
import type { Incident, IncidentKind, Source } from './types.ts';

const insertSql = `
with now as materialized (select runplane.clock() as at)
insert into runplane.ingest_incidents (id, stream, consumer, at, kind, from_sequence, to_sequence, detail, event_id, resolved_at)
select i.id, $1, $2, n.at, i.kind, i."from", i."to", i.detail, i."eventId", case when i."isOver" then n.at end
  from json_to_recordset($3::json) as i(id uuid, kind text, "from" int8, "to" int8, detail text, "eventId" uuid, "isOver" boolean)
  cross join now n
on conflict (stream, consumer, kind) where resolved_at is null and kind in ('STREAM_MISSING', 'AGE_WARNING') do nothing
returning id`;

/** Writes incidents down; of what lasts, only the first. Answers how many are new. */
export async function insertIncidents(
  tx: Queryable,
  { stream, consumer }: Source,
  incidents: readonly Incident[],
): Promise<number> {
  if (incidents.length === 0) return 0;
  const records = incidents.map((incident) => ({ ...incident, id: newUuid() }));
  const { rows } = await tx.query({
    name: 'insert-incidents',
    text: insertSql,
    values: [stream, consumer, JSON.stringify(records)],
  });
  return rows.length;
}

const resolveSql = `
update runplane.ingest_incidents set resolved_at = runplane.clock()
 where stream = $1 and consumer = $2 and kind = $3 and resolved_at is null`;

/** What lasted is over. */
export async function resolveIncident(
  tx: Queryable,
  { stream, consumer }: Source,
  kind: Extract<IncidentKind, 'STREAM_MISSING' | 'AGE_WARNING'>,
): Promise<void> {
  await tx.query({ name: 'resolve-incident', text: resolveSql, values: [stream, consumer, kind] });
}
