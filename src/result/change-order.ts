import { type EnqueuedTask, enqueueTasks } from '../db/enqueue-tasks.sql.ts';
import type { Queryable } from '../db/pool.ts';
import { isDelayedRowOf } from '../db/task-rows.ts';
import { limits } from '../domain/limits.ts';
import { operatorsLead } from '../domain/operators-lead.ts';
import { type Place, takePlaces } from './take-places.sql.ts';

// The delayed row is locked by its deletion: the mover makes the task ready either before, and then it is not here any
// more, or not at all.
const runNowSql = `
with now as materialized (select runplane.clock() as at),
taken as (
  delete from runplane.delayed_tasks d using runplane.tasks t
   where t.id = $1 and ${isDelayedRowOf('d', 't')}
  returning d.task_id, d.sequence, d.attempts),
moved as (
  update runplane.tasks t set available_at = now.at, priority = least($2, t.priority + $3), turn = null
    from taken k cross join now where t.id = k.task_id)
select k.task_id as "taskId", k.sequence, k.attempts from taken k`;

/**
 * Makes a task ready that waits for a time, in front of others. False: it waits for none. The order of its serial key
 * holds. The caller holds the lock of its run.
 */
export async function runTaskNow(tx: Queryable, taskId: string): Promise<boolean> {
  const { rows } = await tx.query<EnqueuedTask & Record<string, unknown>>({
    name: 'run-task-now',
    text: runNowSql,
    values: [taskId, limits.priority.max, operatorsLead],
  });
  await enqueueTasks(tx, rows);
  return rows.length > 0;
}

// Turns are given anew in the lane of each priority.
const prioritySql = 'update runplane.tasks set priority = $2, turn = null where id = $1';
const delaySql = `
insert into runplane.delayed_tasks (available_at, task_id, run_id, agent_id, sequence, attempts, reason, since)
select $2, t.id, t.run_id, t.agent_id, $3, $4, $5, $6 from runplane.tasks t where t.id = $1`;

/**
 * Gives a task that is not over another priority. The row of a ready one says its priority and is found by it, so the
 * place is taken first, whatever it is: nothing makes the task ready with the old priority meanwhile. The caller holds
 * the lock of its run.
 */
export async function changePriority(
  tx: Queryable,
  task: { id: string; isBlocked: boolean },
  priority: number,
): Promise<void> {
  const place = task.isBlocked ? null : (await takePlaces(tx, [task.id])).get(task.id);
  await tx.query({ name: 'set-task-priority', text: prioritySql, values: [task.id, priority] });
  if (place) await putBack(tx, task.id, place);
}

/** Behind a serial key and under a lease the task kept its place. */
async function putBack(tx: Queryable, taskId: string, place: Place): Promise<void> {
  const { sequence, attempts } = place;
  if (place.in === 'READY') await enqueueTasks(tx, [{ taskId, sequence, attempts }]);
  if (place.in !== 'DELAYED') return;
  const { availableAt, reason, since } = place.delay;
  await tx.query({
    name: 'delay-again',
    text: delaySql,
    values: [taskId, availableAt, sequence, attempts, reason, since],
  });
}
