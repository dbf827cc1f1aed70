import type { Queryable } from '../db/pool.ts';
import { memberOf } from '../db/task-rows.ts';
import type { SpawnedRow, Spawner } from './check-spawn.ts';
import type { StepKey } from './step-counts.ts';

const spawnersSql = `
select t.id as "taskId", t.run_id as "runId", ${memberOf('t')} as "memberOf", t.priority, r.labels as "runLabels",
       t.cancel_requested_at is not null as "cancelRequested"
  from runplane.tasks t join runplane.runs r on r.id = t.run_id where t.id = any($1)`;

/** The tasks whose results spawn others, as they are under their runs' locks. */
export async function readSpawners(
  tx: Queryable,
  taskIds: readonly string[],
): Promise<Map<string, Spawner & { cancelRequested: boolean }>> {
  const { rows } = await tx.query<Spawner & { cancelRequested: boolean } & Record<string, unknown>>({
    name: 'read-spawners',
    text: spawnersSql,
    values: [taskIds],
  });
  return new Map(rows.map((row) => [row.taskId, row]));
}

/** Ids by name. */
export async function readAgentIds(tx: Queryable, names: readonly string[]): Promise<Map<string, string>> {
  const { rows } = await tx.query<{ id: string; name: string }>({
    name: 'agent-ids',
    text: 'select id, name from runplane.agents where name = any($1)',
    values: [names],
  });
  return new Map(rows.map(({ id, name }) => [name, id]));
}

// Thousands of tasks may wait for one step: from each step that is waited for the index leads straight to the next.
const waitsSql = `
select k.run_id as "runId", k.step, w.step as "waitsFor"
  from unnest($1::uuid[], $2::text[]) k(run_id, step) cross join lateral (
    with recursive steps(step) as (
      (select x.step from runplane.step_waits x where x.run_id = k.run_id and x.waiting_step = k.step order by x.step limit 1)
      union all
      select (select x.step from runplane.step_waits x where x.run_id = k.run_id and x.waiting_step = k.step and x.step > s.step
               order by x.step limit 1)
        from steps s where s.step is not null)
    select s.step from steps s where s.step is not null) w`;

/** What the blocked members of these steps wait for. */
export async function readWaits(
  tx: Queryable,
  keys: readonly StepKey[],
): Promise<(StepKey & { waitsFor: string })[]> {
  if (keys.length === 0) return [];
  const { rows } = await tx.query<StepKey & { waitsFor: string } & Record<string, unknown>>({
    name: 'read-step-waits',
    text: waitsSql,
    values: [keys.map(({ runId }) => runId), keys.map(({ step }) => step)],
  });
  return rows;
}

// Blocked ones are logged here. The others are enqueued by the transition, as tasks are whose dependencies are over.
const insertSql = `
with now as materialized (select runplane.clock() as at),
given as materialized (
  select g.*, coalesce(g.available_at, n.at) as starts_at from json_to_recordset($1::json) as g(
    id uuid, run_id uuid, parent_task_id uuid, step text, member_of text[], agent_id uuid, priority smallint, serial_key text,
    input jsonb, depends_on text[], runs_when runplane.step_condition, optional boolean, max_attempts int, estimated_tokens bigint,
    labels jsonb, available_at timestamptz) cross join now n),
spawned as (
  insert into runplane.tasks (id, run_id, parent_task_id, step, member_of, agent_id, state, priority, serial_key, input, depends_on,
                              runs_when, optional, max_attempts, estimated_tokens, labels, available_at, created_at)
  select g.id, g.run_id, g.parent_task_id, g.step, g.member_of, g.agent_id,
         (case when g.depends_on is null then 'OPEN' else 'BLOCKED' end)::runplane.task_state, g.priority, g.serial_key,
         g.input -> 'value', g.depends_on, g.runs_when, g.optional, g.max_attempts, g.estimated_tokens,
         g.labels, g.starts_at, n.at
    from given g cross join now n),
logged as (
  insert into runplane.change_log (run_id, task_id, sequence, from_status, to_status, at)
  select g.run_id, g.id, 1, null, 'BLOCKED', n.at from given g cross join now n where g.depends_on is not null)
select g.id, extract(epoch from g.starts_at - n.at)::float8 as "delaySeconds" from given g cross join now n where g.starts_at > n.at`;

/** Inserts spawned tasks; answers in how many seconds those may start that were asked for later. */
export async function insertSpawned(
  tx: Queryable,
  rows: readonly SpawnedRow[],
): Promise<Map<string, number>> {
  const { rows: later } = await tx.query<{ id: string; delaySeconds: number }>({
    name: 'insert-spawned',
    text: insertSql,
    values: [JSON.stringify(rows)],
  });
  return new Map(later.map(({ id, delaySeconds }) => [id, delaySeconds]));
}
