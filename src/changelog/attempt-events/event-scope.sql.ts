import type { Queryable } from '../../db/pool.ts';
import type { AttemptEventsOf } from '../types.ts';
import type { EventScope } from './read-events.sql.ts';

const scopeOfRunSql = `
select r.id as "runId", null::uuid as "taskId", null::uuid as "attemptId" from runplane.runs r where r.id = $1`;
const scopeOfTaskSql = `
select t.run_id as "runId", t.id as "taskId", null::uuid as "attemptId" from runplane.tasks t where t.id = $1 and t.deleted_at is null`;
const scopeOfAttemptSql = `
select t.run_id as "runId", t.id as "taskId", $1::uuid as "attemptId" from runplane.tasks t
 where t.deleted_at is null and t.id in (
   select l.task_id from runplane.leases l where l.attempt_id = $1 union select a.task_id from runplane.attempts a where a.id = $1)`;

const isOverSql = `
select coalesce(
  case when $3::uuid is not null then not exists (select from runplane.leases l where l.attempt_id = $3)
       when $2::uuid is not null then (select t.finished_at is not null from runplane.tasks t where t.id = $2)
       else (select r.finished_at is not null from runplane.runs r where r.id = $1) end, true) as over`;

/** Where the events of a run, task or attempt are; null when there is none. */
export async function findScope(db: Queryable, of: AttemptEventsOf): Promise<EventScope | null> {
  const [name, text, id] =
    'runId' in of
      ? ['event-scope-of-run', scopeOfRunSql, of.runId]
      : 'taskId' in of
        ? ['event-scope-of-task', scopeOfTaskSql, of.taskId]
        : ['event-scope-of-attempt', scopeOfAttemptSql, of.attemptId];
  const { rows } = await db.query<{ runId: string; taskId: string | null; attemptId: string | null }>({
    name,
    text,
    values: [id],
  });
  return rows[0] ?? null;
}

/** Whether the run or task is terminal, or the attempt ended; also when it is not there any more. */
export async function isOver(db: Queryable, { runId, taskId, attemptId }: EventScope): Promise<boolean> {
  const { rows } = await db.query<{ over: boolean }>({
    name: 'is-event-scope-over',
    text: isOverSql,
    values: [runId, taskId, attemptId],
  });
  return rows[0]?.over ?? true;
}
