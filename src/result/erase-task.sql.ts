import type { Queryable } from '../db/pool.ts';

// The rows stay: the task's for its run, the attempts' and the usage's for what they cost, the materializations' for the
// lineage of others.
const eraseSql = `
with now as materialized (select runplane.clock() as at),
hidden as (
  update runplane.tasks t set deleted_at = now.at, input = null, output = null, error_message = null from now where t.id = $1),
attempts as (
  update runplane.attempts a set error_message = null where a.task_id = $1 and a.error_message is not null),
usage as (
  update runplane.usage u set raw = null where u.task_id = $1 and u.raw is not null),
materializations as (
  update runplane.materializations m set metadata = null where m.task_id = $1 and m.metadata is not null),
progress as (
  delete from runplane.task_progress p where p.task_id = $1)
delete from runplane.dead_letters d where d.task_id = $1`;

// Of events that were appended before the task was hidden, which a statement that waited for them does not see itself.
const eraseEventsSql = `
with counts as (
  delete from runplane.attempt_event_counts c where c.attempt_id in (select a.id from runplane.attempts a where a.task_id = $1))
delete from runplane.attempt_events e where e.task_id = $1`;

/** Hides a task that is over and erases its payloads and its dead letter. The caller holds the lock of its run. */
export async function eraseTask(tx: Queryable, taskId: string): Promise<void> {
  await tx.query({ name: 'erase-task', text: eraseSql, values: [taskId] });
  await tx.query({ name: 'erase-attempt-events', text: eraseEventsSql, values: [taskId] });
}
