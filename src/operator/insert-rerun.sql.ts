import type { Queryable } from '../db/pool.ts';
import { newUuid } from '../domain/ids.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { operatorsLead } from '../domain/operators-lead.ts';
import type { RunStatus } from '../domain/status.ts';
import type { OldTask, RerunTask } from './plan-rerun.ts';

/** What is told of a rerun beside what came of it: of the new run, or of the old one where there is none. */
export interface RunToTell {
  correlationId: string;
  eventId: string | null;
  /** Packed. */
  traceContext: string | null;
}

export interface OldRun extends RunToTell {
  status: RunStatus;
  job: string;
  configSchema: Json;
  /** Every transaction before it is over: where to watch a run from that is made now. */
  position: string;
}

/** Under its lock: a retry of its tasks comes before, or after. */
export async function readOldRun(tx: Queryable, id: string): Promise<OldRun | null> {
  const { rows } = await tx.query<OldRun & Record<string, unknown>>({
    text: `select r.status, j.name as job, v.config_schema as "configSchema", pg_snapshot_xmin(pg_current_snapshot())::text as position,
                  r.correlation_id as "correlationId", r.event_id as "eventId", encode(r.trace_context, 'hex') as "traceContext" from runplane.runs r join runplane.jobs j on j.id = r.job_id
             join runplane.job_versions v on v.job_id = r.job_id and v.version = r.job_version where r.id = $1 for no key update of r`,
    values: [id],
  });
  return rows[0] ?? null;
}

export async function readRunToTell(tx: Queryable, id: string): Promise<RunToTell | null> {
  const { rows } = await tx.query<RunToTell & Record<string, unknown>>({
    text: `select correlation_id as "correlationId", event_id as "eventId", encode(trace_context, 'hex') as "traceContext" from runplane.runs where id = $1`,
    values: [id],
  });
  return rows[0] ?? null;
}

/** All tasks of the run, deleted ones too, in the order of their creation. */
export async function readOldTasks(tx: Queryable, runId: string): Promise<OldTask[]> {
  const { rows } = await tx.query<OldTask & Record<string, unknown>>({
    text: `select id, parent_task_id as "parentId", step, state, coalesce(depends_on, '{}') as "dependsOn", deleted_at is not null as deleted
             from runplane.tasks where run_id = $1 order by id`,
    values: [runId],
  });
  return rows;
}

// The event of the old run is the new one's too, for its templates; the route is not, because a route launches once.
// Tasks that are executed again are inserted as if all of them waited: what waits for nothing is enqueued by the same
// rules, and with its input rendered, as after any other step. Steps get their input anew; spawned tasks keep theirs.
const insertSql = `
with now as materialized (select runplane.clock() as at),
given as materialized (
  select g.* from json_to_recordset($6::json) as g(old_id uuid, new_id uuid, parent_id uuid, taken_over boolean)),
old as materialized (select r.* from runplane.runs r where r.id = $2),
new_run as (
  insert into runplane.runs (id, job_id, job_version, config, correlation_id, idempotency_key, serial_key, customer, labels, priority,
                             event_id, parent_run_id, open_tasks, blocked_tasks, total_tasks, has_spawned, available_at, created_at, trace_context)
  select $1, o.job_id, o.job_version, coalesce($3::jsonb, o.config), o.correlation_id, $4, o.serial_key, o.customer, o.labels,
         least($7::int, coalesce($5::int, o.priority + $8::int)), o.event_id, o.id,
         (select count(*) from given g where not g.taken_over), (select count(*) from given g where not g.taken_over),
         (select count(*) from given),
         exists (select from given g join runplane.tasks t on t.id = g.old_id where t.parent_task_id is not null), now.at, now.at, coalesce(decode($9, 'hex'), o.trace_context)
    from old o cross join now
  returning id),
new_tasks as (
  insert into runplane.tasks (id, run_id, step, agent_id, state, priority, serial_key, input, output, depends_on, runs_when, optional,
                              cancellable, max_attempts, estimated_tokens, confidence, parent_task_id, member_of, labels, taken_over_from, available_at,
                              created_at, finished_at)
  select g.new_id, $1, t.step, t.agent_id, (case when g.taken_over then 'COMPLETED' else 'BLOCKED' end)::runplane.task_state,
         case when g.taken_over then t.priority else least($7::int, coalesce($5::int, t.priority + $8::int)) end, t.serial_key,
         case when g.taken_over then coalesce(t.input, case when $3 is not null then o.config end)
              when t.parent_task_id is not null then t.input end,
         case when g.taken_over then t.output end, t.depends_on, t.runs_when, t.optional, t.cancellable, t.max_attempts, t.estimated_tokens,
         case when g.taken_over then t.confidence end,
         g.parent_id, t.member_of, t.labels, case when g.taken_over then t.id end, now.at, now.at,
         case when g.taken_over then now.at end
    from given g join runplane.tasks t on t.id = g.old_id cross join old o cross join now),
logged as (
  insert into runplane.change_log (run_id, task_id, sequence, from_status, to_status, reason, at)
  select $1, null::uuid, 1, null::runplane.logged_status, 'QUEUED'::runplane.logged_status, 'RERUN', now.at from now
  union all
  select $1, g.new_id, 1, null, (case when g.taken_over then 'COMPLETED' else 'BLOCKED' end)::runplane.logged_status,
         case when g.taken_over then 'TAKEN_OVER' end, now.at
    from given g cross join now)
select from new_run`;

export interface NewRun {
  id: string;
  oldId: string;
  /** Null: the old one's. */
  config: JsonObject | null;
  idempotencyKey: string | null;
  /** Null: above what the run and each task had. */
  priority: number | null;
  /** Packed; null: the old one's. */
  traceContext: string | null;
  tasks: readonly RerunTask[];
}

/** Inserts the new run with its tasks, all that are to be executed BLOCKED. */
export async function insertRerun(tx: Queryable, run: NewRun): Promise<void> {
  const newIds = new Map(run.tasks.map(({ oldId }) => [oldId, newUuid()]));
  const tasks = run.tasks.map(({ oldId, oldParentId, takenOver }) => ({
    old_id: oldId,
    new_id: newIds.get(oldId),
    parent_id: oldParentId === null ? undefined : newIds.get(oldParentId),
    taken_over: takenOver,
  }));
  await tx.query({
    text: insertSql,
    values: [
      run.id,
      run.oldId,
      run.config === null ? null : JSON.stringify(run.config),
      run.idempotencyKey,
      run.priority,
      JSON.stringify(tasks),
      limits.priority.max,
      operatorsLead,
      run.traceContext,
    ],
  });
}
