import { arrayOfJson } from '../../db/array-of-json.ts';
import type { Queryable } from '../../db/pool.ts';
import type { StoredEvents } from './decide-append.ts';
import type { NewAttemptEvent } from './parse-append.ts';

// A task that is deleted meanwhile has no attempts any more: the lock makes its deletion wait for what is appended, or
// this for the deletion.
const lockTasksSql = `
with found as materialized (
  select l.attempt_id, l.task_id, l.run_id from runplane.leases l where l.attempt_id = any($1)
  union
  select a.id, a.task_id, a.run_id from runplane.attempts a where a.id = any($1))
select f.attempt_id as "attemptId", f.task_id as "taskId", f.run_id as "runId"
  from found f join runplane.tasks t on t.id = f.task_id where t.deleted_at is null order by t.id for share of t`;

const lockCountsSql = `
select c.attempt_id as "attemptId", c.last_sequence as "lastSequence", c.bytes from runplane.attempt_event_counts c
 where c.attempt_id = any($1) order by c.attempt_id for update`;
const makeCountsSql = `
insert into runplane.attempt_event_counts (attempt_id) select x.id from unnest($1::uuid[]) x(id) order by x.id on conflict do nothing`;

const dropUnusedCountsSql = `
delete from runplane.attempt_event_counts c where c.attempt_id = any($1) and c.last_sequence = 0`;

// Numbers are drawn in the order of the events, under the lock of their attempt.
const writeSql = `
with now as materialized (select runplane.clock() as at),
given as materialized (
  select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::text[], $6::timestamptz[], $7::text[], $8::int[], $9::boolean[])
    with ordinality g(run_id, task_id, attempt_id, sequence, type, at, data, bytes, repaired, place)),
written as (
  insert into runplane.attempt_events (run_id, task_id, attempt_id, sequence, type, at, data, bytes)
  select g.run_id, g.task_id, g.attempt_id, g.sequence, g.type, coalesce(g.at, n.at), nullif(g.data, 'null')::jsonb, g.bytes
    from given g cross join now n order by g.place)
update runplane.attempt_event_counts c
   set last_sequence = s.last_sequence, bytes = c.bytes + s.bytes, sanitized = c.sanitized or s.repaired
  from (select g.attempt_id, max(g.sequence) as last_sequence, sum(g.bytes) as bytes, bool_or(g.repaired) as repaired
          from given g group by g.attempt_id) s
 where c.attempt_id = s.attempt_id`;

export interface KnownAttempt {
  attemptId: string;
  taskId: string;
  runId: string;
}

/** Which of the attempts there are, running or over. Their tasks stay what they are until the transaction ends. */
export async function lockAttempts(
  tx: Queryable,
  attemptIds: readonly string[],
): Promise<Map<string, KnownAttempt>> {
  const { rows } = await tx.query<KnownAttempt>({
    name: 'lock-appending-tasks',
    text: lockTasksSql,
    values: [attemptIds],
  });
  return new Map(rows.map((row) => [row.attemptId, row]));
}

/** What these attempts told so far, each kept from others that would append to it. */
export async function lockCounts(
  tx: Queryable,
  attemptIds: readonly string[],
): Promise<Map<string, StoredEvents>> {
  const lock = async (): Promise<Map<string, StoredEvents>> => {
    const { rows } = await tx.query<StoredEvents & { attemptId: string }>({
      name: 'lock-event-counts',
      text: lockCountsSql,
      values: [attemptIds],
    });
    return new Map(rows.map(({ attemptId, ...stored }) => [attemptId, stored]));
  };
  const counts = await lock();
  if (counts.size === attemptIds.length) return counts;
  const missing = attemptIds.filter((id) => !counts.has(id));
  await tx.query({ name: 'make-event-counts', text: makeCountsSql, values: [missing] });
  return lock();
}

/** Of attempts that told nothing after all: what is refused leaves no trace. */
export async function dropUnusedCounts(tx: Queryable, attemptIds: readonly string[]): Promise<void> {
  await tx.query({ name: 'drop-unused-event-counts', text: dropUnusedCountsSql, values: [attemptIds] });
}

export type NumberedEvent = KnownAttempt & NewAttemptEvent & { sequence: number };

export async function writeEvents(tx: Queryable, events: readonly NumberedEvent[]): Promise<void> {
  const column = <Value>(of: (event: NumberedEvent) => Value): Value[] => events.map(of);
  await tx.query({
    name: 'write-attempt-events',
    text: writeSql,
    values: [
      column(({ runId }) => runId),
      column(({ taskId }) => taskId),
      column(({ attemptId }) => attemptId),
      column(({ sequence }) => sequence),
      column(({ type }) => type),
      column(({ at }) => at),
      arrayOfJson(column(({ data }) => data)),
      column(({ bytes }) => bytes),
      column(({ repaired }) => repaired),
    ],
  });
}
