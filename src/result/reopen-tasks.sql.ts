import { type EnqueuedTask, enqueueTasks } from '../db/enqueue-tasks.sql.ts';
import type { Queryable } from '../db/pool.ts';
import type { Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { operatorsLead } from '../domain/operators-lead.ts';
import { isTerminal } from '../domain/status.ts';
import type { LockedRun } from './lock-runs.sql.ts';
import type { RunTask } from './read-run-tasks.sql.ts';

export interface ReopenedTask {
  task: RunTask;
  /** For steps that are not over: BLOCKED; else it is enqueued. */
  waits: boolean;
  /** Null: the one that it had. */
  input: { value: Json } | null;
}

/** Which of these tasks have no input of their own. */
export async function withoutInput(tx: Queryable, taskIds: readonly string[]): Promise<Set<string>> {
  if (taskIds.length === 0) return new Set();
  const { rows } = await tx.query<{ id: string }>({
    name: 'tasks-without-input',
    text: 'select t.id from runplane.tasks t where t.id = any($1) and t.input is null',
    values: [taskIds],
  });
  return new Set(rows.map(({ id }) => id));
}

const reopenSql = `
with now as materialized (select runplane.clock() as at),
given as materialized (
  select g.*, least($4::int, coalesce($2::int, t.priority + $5::int))::smallint as new_priority,
         coalesce((select max(a.number) from runplane.attempts a where a.task_id = g.task_id), 0) as attempts
    from json_to_recordset($1::json) as g(task_id uuid, run_id uuid, from_status runplane.logged_status, sequence int, waits boolean, input json)
    join runplane.tasks t on t.id = g.task_id),
runs as materialized (
  select * from json_to_recordset($3::json) as r(run_id uuid, opened int, blocked int, from_status runplane.logged_status, sequence int)),
opened as (
  update runplane.tasks t set state = case when g.waits then 'BLOCKED' else 'OPEN' end::runplane.task_state, sequence = g.sequence,
         input = coalesce((g.input -> 'value')::jsonb, t.input),
         priority = g.new_priority, rank = null, turn = null, attempts_forgiven = g.attempts, available_at = n.at, finished_at = null,
         cancel_requested_at = null, error_code = null, error_kind = null, error_message = null
    from given g cross join now n where t.id = g.task_id),
replayed as (
  update runplane.dead_letters d set replayed_at = n.at from given g cross join now n where d.task_id = g.task_id),
followed as (
  update runplane.runs r set open_tasks = r.open_tasks + c.opened, blocked_tasks = r.blocked_tasks + c.blocked, sequence = c.sequence,
         status = case when c.from_status is null then r.status else 'RUNNING' end, finished_at = null,
         cancel_requested_at = case when c.from_status is null then r.cancel_requested_at end,
         failed_task_id = case when r.failed_task_id in (select g.task_id from given g) then null else r.failed_task_id end
    from runs c where r.id = c.run_id),
logged as (
  insert into runplane.change_log (run_id, task_id, sequence, from_status, to_status, reason, at)
  select g.run_id, g.task_id, g.sequence, g.from_status, (case when g.waits then 'BLOCKED' else 'ENQUEUED' end)::runplane.logged_status, 'RETRY', n.at
    from given g cross join now n
  union all
  select c.run_id, null, c.sequence, c.from_status, 'RUNNING', 'RETRY', n.at from runs c cross join now n where c.from_status is not null)
select g.task_id as "taskId", g.sequence, g.attempts from given g where not g.waits`;

/** Opens tasks that were over, under the locks of their runs. */
export async function writeReopened(
  tx: Queryable,
  reopened: readonly ReopenedTask[],
  runs: ReadonlyMap<string, LockedRun>,
  priority: number | null,
): Promise<void> {
  if (reopened.length === 0) return;
  const given = reopened.map(({ task, waits, input }) => ({
    task_id: task.id,
    run_id: task.runId,
    from_status: task.state,
    sequence: task.sequence + 1,
    waits,
    input,
  }));
  const followed = [...runs.values()].flatMap((run) => {
    const own = reopened.filter(({ task }) => task.runId === run.id);
    const wasOver = isTerminal(run.status);
    return own.length === 0
      ? []
      : {
          run_id: run.id,
          opened: own.length,
          blocked: own.filter(({ waits }) => waits).length,
          from_status: wasOver ? run.status : null,
          sequence: run.sequence + (wasOver ? 1 : 0),
        };
  });
  const { rows: enqueued } = await tx.query<EnqueuedTask & Record<string, unknown>>({
    name: 'reopen-tasks',
    text: reopenSql,
    values: [JSON.stringify(given), priority, JSON.stringify(followed), limits.priority.max, operatorsLead],
  });
  await enqueueTasks(tx, enqueued);
}
