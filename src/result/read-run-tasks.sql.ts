import type { Queryable } from '../db/pool.ts';
import { memberOf } from '../db/task-rows.ts';
import type { TaskNode } from './resolve-dependents.ts';

/** A task of a run that has more than one. */
export interface RunTask extends TaskNode {
  runId: string;
  agentId: string;
  serialKey: string | null;
  sequence: number;
  cancellable: boolean;
  cancelRequested: boolean;
  errorCode: string | null;
  /** It counts for its run, and is never tried again. */
  deleted: boolean;
  /** By the result of another task. */
  spawned: boolean;
}

export const runTaskColumns = (t: string): string => `
${t}.id, ${t}.run_id as "runId", ${t}.step, ${memberOf(t)} as "memberOf", ${t}.agent_id as "agentId", ${t}.state,
       coalesce(${t}.depends_on, '{}') as "dependsOn", ${t}.runs_when as "when", ${t}.optional, ${t}.serial_key as "serialKey", ${t}.sequence,
       ${t}.cancellable, ${t}.cancel_requested_at is not null as "cancelRequested", ${t}.error_code as "errorCode",
       ${t}.parent_task_id is not null as spawned, ${t}.deleted_at is not null as deleted`;

const ofRunsSql = `select ${runTaskColumns('t')} from runplane.tasks t where t.run_id = any($1) order by t.run_id, t.id`;
const byIdSql = `select ${runTaskColumns('t')} from runplane.tasks t where t.id = any($1) order by t.run_id, t.id`;

async function read(tx: Queryable, name: string, text: string, ids: readonly string[]): Promise<RunTask[]> {
  if (ids.length === 0) return [];
  const { rows } = await tx.query<RunTask & Record<string, unknown>>({ name, text, values: [ids] });
  return rows;
}

/** All tasks of these runs. */
export const readRunTasks = (tx: Queryable, runIds: readonly string[]): Promise<RunTask[]> =>
  read(tx, 'read-run-tasks', ofRunsSql, runIds);

export const readTasks = (tx: Queryable, taskIds: readonly string[]): Promise<RunTask[]> =>
  read(tx, 'read-tasks', byIdSql, taskIds);

const kindsOfEndsSql = `
select distinct t.run_id as "runId", t.state, t.optional from runplane.tasks t where t.run_id = any($1) and t.finished_at is not null`;

/** In which ways tasks of these runs ended, by run: what decides the status of a run that is too large to be read. */
export async function readKindsOfEnds(
  tx: Queryable,
  runIds: readonly string[],
): Promise<Map<string, Pick<RunTask, 'state' | 'optional'>[]>> {
  if (runIds.length === 0) return new Map();
  const { rows } = await tx.query<Pick<RunTask, 'runId' | 'state' | 'optional'>>({
    name: 'kinds-of-ends',
    text: kindsOfEndsSql,
    values: [runIds],
  });
  return new Map(runIds.map((id) => [id, rows.filter(({ runId }) => runId === id)]));
}
