import type { Queryable } from '../db/pool.ts';
import type { StepCondition } from '../domain/job-definition.ts';
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
}

const tasksSql = `
select id, run_id as "runId", step, agent_id as "agentId", state, coalesce(depends_on, '{}') as "dependsOn", runs_when as "when", optional,
       serial_key as "serialKey", sequence, cancellable,
       cancel_requested_at is not null as "cancelRequested", error_code as "errorCode",
       deleted_at is not null as deleted
  from runplane.tasks where run_id = any($1) order by run_id, id`;

export async function readRunTasks(tx: Queryable, runIds: readonly string[]): Promise<RunTask[]> {
  if (runIds.length === 0) return [];
  const { rows } = await tx.query<RunTask & { when: StepCondition } & Record<string, unknown>>({
    name: 'read-run-tasks',
    text: tasksSql,
    values: [runIds],
  });
  return rows;
}
