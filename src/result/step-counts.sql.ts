import type { Queryable } from '../db/pool.ts';
import { memberOf } from '../db/task-rows.ts';
import { type RunTask, runTaskColumns } from './read-run-tasks.sql.ts';
import type { StepCount, StepCounts, StepKey } from './step-counts.ts';

const keysOf = (keys: readonly StepKey[]): [string[], string[]] => [
  keys.map(({ runId }) => runId),
  keys.map(({ step }) => step),
];

const forgetSql = `
with waits as (delete from runplane.step_waits where run_id = any($1))
delete from runplane.run_steps where run_id = any($1)`;

const countSql = `
with own as materialized (
  select t.id, t.run_id, ${memberOf('t')} as member_of, t.state, t.optional, t.depends_on
    from runplane.tasks t where t.run_id = any($1)),
marked as (
  update runplane.runs set has_spawned = true where id = any($1) and not has_spawned),
joins as materialized (
  select o.run_id, d.step, count(*) as joined from own o cross join unnest(o.depends_on) d(step) where o.state <> 'BLOCKED' group by 1, 2),
members as materialized (
  select o.run_id, m.step, count(*) filter (where o.state in ('BLOCKED', 'OPEN')) as open,
         count(*) filter (where o.state in ('FAILED', 'CANCELLED') and not o.optional) as broken
    from own o cross join unnest(o.member_of) m(step) group by 1, 2),
counted as (
  insert into runplane.run_steps (run_id, step, open, broken, joined)
  select m.run_id, m.step, m.open, m.broken, coalesce(j.joined, 0)
    from members m left join joins j on j.run_id = m.run_id and j.step = m.step)
insert into runplane.step_waits (run_id, waiting_step, step, task_id)
select o.run_id, m.step, d.step, o.id from own o cross join unnest(o.member_of) m(step) cross join unnest(o.depends_on) d(step)
 where o.state = 'BLOCKED'`;

/** Counts the steps of runs: before the first task is spawned in them, or anew. */
export async function countSteps(tx: Queryable, runIds: readonly string[]): Promise<void> {
  if (runIds.length === 0) return;
  await tx.query({ name: 'forget-step-counts', text: forgetSql, values: [runIds] });
  await tx.query({ name: 'count-steps', text: countSql, values: [runIds] });
}

const unmarkSql = `update runplane.runs set has_spawned = false where id = any($1)`;

/** Undoes the first count of runs in which nothing was spawned after all: what is refused leaves no trace. */
export async function uncountSteps(tx: Queryable, runIds: readonly string[]): Promise<void> {
  if (runIds.length === 0) return;
  await tx.query({ name: 'forget-step-counts', text: forgetSql, values: [runIds] });
  await tx.query({ name: 'unmark-spawned', text: unmarkSql, values: [runIds] });
}

const readSql = `
select s.run_id as "runId", s.step, s.open, s.broken, s.joined
  from unnest($1::uuid[], $2::text[]) k(run_id, step)
  cross join lateral (select x.* from runplane.run_steps x where x.run_id = k.run_id and x.step = k.step offset 0) s`;

/** As SQL: the counts of a run that should have them are wrong. */
export const isMiscounted = (run: string): string => `(${run}.has_spawned and exists (
  select from (
    select m.step, count(*) filter (where t.finished_at is null) as open,
           count(*) filter (where t.state in ('FAILED', 'CANCELLED') and not t.optional) as broken
      from runplane.tasks t cross join unnest(${memberOf('t')}) m(step) where t.run_id = ${run}.id group by m.step) m
    full join (select s.step, s.open, s.broken from runplane.run_steps s where s.run_id = ${run}.id) s on s.step = m.step
   where (m.open, m.broken) is distinct from (s.open::bigint, s.broken::bigint)))`;

/** Makes the counts of these steps known. */
export async function readStepCounts(
  tx: Queryable,
  counts: StepCounts,
  keys: readonly StepKey[],
): Promise<void> {
  const unread = counts.unread(keys);
  if (unread.length === 0) return;
  const { rows } = await tx.query<StepKey & StepCount & Record<string, unknown>>({
    name: 'read-step-counts',
    text: readSql,
    values: keysOf(unread),
  });
  counts.learn(unread, rows);
}

/** A task with what it is counted for. */
export interface Member {
  taskId: string;
  runId: string;
  memberOf: string[];
  dependsOn: string[];
  /** As it is stored, so before what the transaction at hand makes of it. */
  blocked: boolean;
  spawned: boolean;
}

const membersSql = `
select t.id as "taskId", t.run_id as "runId", ${memberOf('t')} as "memberOf", coalesce(t.depends_on, '{}') as "dependsOn",
       t.state = 'BLOCKED' as blocked, t.parent_task_id is not null as spawned
  from runplane.tasks t where t.id = any($1)`;

/** What these tasks are counted for. */
export async function readMembers(tx: Queryable, taskIds: readonly string[]): Promise<Member[]> {
  if (taskIds.length === 0) return [];
  const { rows } = await tx.query<Member & Record<string, unknown>>({
    name: 'read-members',
    text: membersSql,
    values: [taskIds],
  });
  return rows;
}

const waitingSql = `
with now as materialized (select runplane.clock() as at)
select ${runTaskColumns('t')}, case when t.parent_task_id is not null and t.available_at > now.at then t.available_at end as "availableAt",
       extract(epoch from t.available_at - now.at)::float8 as "delaySeconds"
  from now cross join runplane.tasks t
 where t.id = any(array(
   select w.task_id from unnest($1::uuid[], $2::text[]) k(run_id, step) cross join lateral (
     select x.task_id from runplane.step_waits x where x.run_id = k.run_id and x.step = k.step offset 0) w))
 order by t.run_id, t.id`;

/** A blocked task; one that was spawned for later has the time. */
export type WaitingTask = RunTask & { availableAt: Date | null; delaySeconds: number };

/** The blocked tasks that depend on one of these steps. */
export async function readWaitingTasks(tx: Queryable, keys: readonly StepKey[]): Promise<WaitingTask[]> {
  if (keys.length === 0) return [];
  const { rows } = await tx.query<WaitingTask & Record<string, unknown>>({
    name: 'read-waiting-tasks',
    text: waitingSql,
    values: keysOf(keys),
  });
  return rows;
}

const waitSql = `
insert into runplane.step_waits (run_id, waiting_step, step, task_id)
select t.run_id, m.step, d.step, t.id from runplane.tasks t
 cross join unnest(${memberOf('t')}) m(step) cross join unnest(t.depends_on) d(step)
 where t.id = any($1)`;

/** Blocked tasks wait for the steps that they depend on. */
export async function addStepWaits(tx: Queryable, taskIds: readonly string[]): Promise<void> {
  if (taskIds.length === 0) return;
  await tx.query({ name: 'add-step-waits', text: waitSql, values: [taskIds] });
}

// Nobody else writes the counts and waits of these runs meanwhile: what has no row before the statement is new, and a row
// stays where it was found. They are looked up one by one, since a join could go through those of all runs.
const writeSql = `
with changes as materialized (
  select c.*, k.place from json_to_recordset($1::json) as c(run_id uuid, step text, open int, broken int, joined int)
    left join lateral (
      select s.ctid as place from runplane.run_steps s where s.run_id = c.run_id and s.step = c.step offset 0) k on true),
changed as (
  update runplane.run_steps s set open = s.open + c.open, broken = s.broken + c.broken, joined = s.joined + c.joined
    from changes c where s.ctid = c.place),
added as (
  insert into runplane.run_steps (run_id, step, open, broken, joined)
  select c.run_id, c.step, c.open, c.broken, c.joined from changes c where c.place is null)
delete from runplane.step_waits w where w.ctid = any(array(
  select k.ctid from json_to_recordset($2::json) as e(run_id uuid, step text, task_id uuid) cross join lateral (
    select x.ctid from runplane.step_waits x where x.run_id = e.run_id and x.step = e.step and x.task_id = e.task_id offset 0) k))`;

/** Stores what a transaction changed about the steps of runs with spawned tasks. */
export async function writeStepCounts(tx: Queryable, counts: StepCounts): Promise<void> {
  const changes = counts.changes();
  if (changes.length === 0 && counts.ended.length === 0) return;
  await tx.query({
    name: 'write-step-counts',
    text: writeSql,
    values: [JSON.stringify(changes), JSON.stringify(counts.ended)],
  });
}
