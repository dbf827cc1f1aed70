import type { Queryable } from '../db/pool.ts';
import { memberOf } from '../db/task-rows.ts';
import { allDependencies, type StepDefinition } from '../domain/job-definition.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { RunTask } from './read-run-tasks.sql.ts';
import type { FreshEnd } from './render-inputs.ts';

/** What templates see of the tasks that were spawned in a step or below it. */
export interface SpawnedList {
  runId: string;
  step: string;
  /** In the order of their creation. */
  tasks: JsonObject[];
  /** There are more, which do not fit. */
  tasksCut: boolean;
}

// A run's tasks are found in the order of their creation, and no further than as many as are wanted.
const spawnedSql = `
select k.run_id as "runId", k.step as of, t.id as "taskId", t.step, t.state, t.error_code as "errorCode",
       coalesce(i.bytes, 0) <= $4 as fits, case when coalesce(i.bytes, 0) <= $4 then t.output end as output
  from unnest($1::uuid[], $2::text[]) k(run_id, step)
 cross join lateral (
   select x.id, sum(pg_column_size(x.output)) over (order by x.id) as bytes from (
     select m.id, m.output from runplane.tasks m
      where m.run_id = k.run_id and m.parent_task_id is not null and k.step = any(${memberOf('m')})
      order by m.id limit $3) x) i
  join runplane.tasks t on t.id = i.id
 order by t.id`;

interface SpawnedEnd {
  runId: string;
  of: string;
  taskId: string;
  step: string;
  state: string;
  output: Json;
  errorCode: string | null;
  /** What comes before it leaves room for its output. */
  fits: boolean;
}

/** For the steps that these tasks depend on, directly or through others, what was spawned in them. */
export async function readSpawnedTasks(
  tx: Queryable,
  runs: readonly { id: string; steps: StepDefinition[] }[],
  tasks: readonly RunTask[],
  fresh: readonly FreshEnd[],
): Promise<SpawnedList[]> {
  const wanted = runs.flatMap(({ id, steps }) => {
    const own = tasks.filter((task) => task.runId === id);
    const direct = own.flatMap((task) => task.dependsOn);
    return [...allDependencies(direct, steps)].map((step) => ({ runId: id, step }));
  });
  if (wanted.length === 0) return [];
  const { rows } = await tx.query<SpawnedEnd & Record<string, unknown>>({
    name: 'spawned-tasks-for-inputs',
    text: spawnedSql,
    values: [
      wanted.map(({ runId }) => runId),
      wanted.map(({ step }) => step),
      limits.templateTasks + 1,
      limits.templateTasksBytes,
    ],
  });
  const now = new Map(fresh.map((end) => [end.taskId, end]));
  return wanted.map(({ runId, step }) => {
    const found = rows.filter((row) => row.runId === runId && row.of === step);
    const listed = found.filter(({ fits }) => fits).slice(0, limits.templateTasks);
    const tasksOf = listed.map((row) => {
      const { state, output, errorCode } = now.get(row.taskId) ?? row;
      return { step: row.step, status: state, output, errorCode };
    });
    return { runId, step, tasks: tasksOf, tasksCut: listed.length < found.length };
  });
}
