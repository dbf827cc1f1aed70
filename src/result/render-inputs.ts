import type { Queryable } from '../db/pool.ts';
import { toPublicId } from '../domain/ids.ts';
import type { StepDefinition } from '../domain/job-definition.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { renderTemplate, runContext } from '../domain/template.ts';
import type { RunTask } from './read-run-tasks.sql.ts';

export type RenderedInput = { input: { value: Json } | null } | { failure: string };

interface RunRow {
  id: string;
  job: string;
  config: Json;
  correlationId: string;
  customer: string | null;
  labels: Record<string, string>;
  priority: number;
  steps: StepDefinition[];
  event: EventRow | null;
}
interface EventRow extends JsonObject {
  uuid: string;
}

const runsSql = `
select r.id, j.name as job, r.config, r.correlation_id as "correlationId", r.customer, r.labels, r.priority, v.steps,
       case when e.id is not null then jsonb_build_object('uuid', e.id, 'topic', e.topic, 'correlationId', e.correlation_id,
         'idempotencyKey', e.idempotency_key, 'customer', e.customer, 'labels', e.labels, 'payload', e.payload) end as event
  from runplane.runs r
  join runplane.jobs j on j.id = r.job_id
  join runplane.job_versions v on v.job_id = r.job_id and v.version = r.job_version
  left join runplane.events e on e.id = r.event_id
 where r.id = any($1)`;

const outputsSql = `
select run_id as "runId", step, state, output, error_code as "errorCode" from runplane.tasks
 where run_id = any($1) and finished_at is not null and parent_task_id is null`;

/** What ended in the transaction that asks, not yet written. */
export interface FreshEnd {
  runId: string;
  step: string;
  state: string;
  output: Json;
  errorCode: string | null;
}

/** Renders the inputs of steps whose dependencies are over; keyed by task. */
export async function renderInputs(
  tx: Queryable,
  tasks: readonly RunTask[],
  fresh: readonly FreshEnd[],
): Promise<Map<string, RenderedInput>> {
  if (tasks.length === 0) return new Map();
  const runIds = [...new Set(tasks.map((task) => task.runId))];
  const { rows: runs } = await tx.query<RunRow & Record<string, unknown>>({
    name: 'runs-for-inputs',
    text: runsSql,
    values: [runIds],
  });
  const templates = new Map(
    runs.map((run) => [run.id, new Map(run.steps.map((step) => [step.name, step.input]))]),
  );
  const templated = tasks.filter((task) => (templates.get(task.runId)?.get(task.step) ?? null) !== null);
  const ends =
    templated.length > 0 ? await readEnds(tx, [...new Set(templated.map((task) => task.runId))], fresh) : [];
  const contexts = new Map(
    runs.map((run) => [
      run.id,
      contextOf(
        run,
        ends.filter((end) => end.runId === run.id),
      ),
    ]),
  );

  return new Map(
    tasks.map((task): [string, RenderedInput] => {
      const template = templates.get(task.runId)?.get(task.step) ?? null;
      if (template === null) return [task.id, { input: null }];
      const rendered = renderTemplate(template, contexts.get(task.runId) ?? {});
      return [task.id, rendered.ok ? { input: { value: rendered.value } } : { failure: rendered.message }];
    }),
  );
}

async function readEnds(
  tx: Queryable,
  runIds: readonly string[],
  fresh: readonly FreshEnd[],
): Promise<FreshEnd[]> {
  const { rows } = await tx.query<FreshEnd & Record<string, unknown>>({
    name: 'ends-for-inputs',
    text: outputsSql,
    values: [runIds],
  });
  return [...rows, ...fresh];
}

const contextOf = (run: RunRow, ends: readonly FreshEnd[]): Record<string, unknown> => ({
  config: run.config,
  run: runContext(run),
  event: run.event === null ? null : eventContext(run.event),
  steps: Object.fromEntries(
    ends.map(({ step, state, output, errorCode }) => [step, { status: state, output, errorCode }]),
  ),
});

function eventContext({ uuid, ...event }: EventRow): JsonObject {
  return { id: toPublicId('evt', uuid), ...event };
}
