import type { Queryable } from '../db/pool.ts';
import type { StepDefinition } from '../domain/job-definition.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import {
  eventContext,
  type Rendered,
  renderTemplate,
  runContext,
  type TemplateEvent,
} from '../domain/template.ts';
import { BudgetSpent, TimeBudget, withinBudget } from '../domain/time-bound.ts';
import type { RunTask } from './read-run-tasks.sql.ts';
import { readSpawnedTasks, type SpawnedList } from './read-spawned-tasks.sql.ts';

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
  hasSpawned: boolean;
  event: TemplateEvent | null;
}

const runsSql = `
select r.id, j.name as job, r.config, r.correlation_id as "correlationId", r.customer, r.labels, r.priority, v.steps, r.has_spawned as "hasSpawned",
       case when e.id is not null then jsonb_build_object('id', e.id, 'topic', e.topic, 'correlationId', e.correlation_id,
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
  taskId: string;
  runId: string;
  step: string;
  state: string;
  output: Json;
  errorCode: string | null;
}

interface Ends {
  freshEnds: readonly FreshEnd[];
  spawnedEnds: ReadonlySet<string>;
  repeatsAlone: boolean;
}

/**
 * Renders the inputs of steps whose dependencies are over; keyed by task. Spawned tasks have their input already. All
 * share a bound of time: past it a slow one has failed, or throws BudgetSpent where each end is recorded again alone.
 */
export async function renderInputs(
  tx: Queryable,
  tasks: readonly RunTask[],
  { freshEnds: fresh, spawnedEnds, repeatsAlone }: Ends,
): Promise<Map<string, RenderedInput>> {
  const launched = tasks.filter((task) => !task.spawned);
  if (launched.length === 0) return new Map();
  const runIds = [...new Set(launched.map((task) => task.runId))];
  const { rows: runs } = await tx.query<RunRow & Record<string, unknown>>({
    name: 'runs-for-inputs',
    text: runsSql,
    values: [runIds],
  });
  const templates = new Map(
    runs.map((run) => [run.id, new Map(run.steps.map((step) => [step.name, step.input]))]),
  );
  const templated = launched.filter((task) => (templates.get(task.runId)?.get(task.step) ?? null) !== null);
  const templatedRuns = runs.filter(({ id }) => templated.some((task) => task.runId === id));
  const ends = [
    ...(await readEnds(tx, templatedRuns)),
    ...fresh.filter(({ taskId }) => !spawnedEnds.has(taskId)),
  ];
  const spawned = await readSpawnedTasks(
    tx,
    templatedRuns.filter((run) => run.hasSpawned),
    templated,
    fresh,
  );
  const contexts = new Map(
    templatedRuns.map((run) => [
      run.id,
      contextOf(
        run,
        ends.filter((end) => end.runId === run.id),
        spawned.filter((list) => list.runId === run.id),
      ),
    ]),
  );

  const budget = new TimeBudget(limits.sharedMs, limits.hurriedMs);
  return new Map(
    launched.map((task): [string, RenderedInput] => {
      const template = templates.get(task.runId)?.get(task.step) ?? null;
      if (template === null) return [task.id, { input: null }];
      const rendered = renderWithin(budget, template, contexts.get(task.runId) ?? {}, repeatsAlone);
      return [task.id, rendered.ok ? { input: { value: rendered.value } } : { failure: rendered.message }];
    }),
  );
}

function renderWithin(
  budget: TimeBudget,
  template: Json,
  context: Record<string, unknown>,
  repeatsAlone: boolean,
): Rendered {
  try {
    return withinBudget(budget, () => renderTemplate(template, context, 'input'));
  } catch (error) {
    if (!(error instanceof BudgetSpent) || repeatsAlone) throw error;
    return { ok: false, message: error.message };
  }
}

async function readEnds(tx: Queryable, runs: readonly RunRow[]): Promise<Omit<FreshEnd, 'taskId'>[]> {
  if (runs.length === 0) return [];
  const { rows } = await tx.query<FreshEnd & Record<string, unknown>>({
    name: 'ends-for-inputs',
    text: outputsSql,
    values: [runs.map((run) => run.id)],
  });
  return rows;
}

const contextOf = (
  run: RunRow,
  ends: readonly Omit<FreshEnd, 'taskId'>[],
  spawned: readonly SpawnedList[],
): Record<string, unknown> => {
  const steps = Object.fromEntries(
    ends.map(({ step, state, output, errorCode }): [string, JsonObject] => [
      step,
      { status: state, output, errorCode, tasks: [], tasksCut: false },
    ]),
  );
  for (const { step, tasks, tasksCut } of spawned) steps[step] = { ...steps[step], tasks, tasksCut };
  return {
    config: run.config,
    run: runContext(run),
    event: run.event && eventContext(run.event),
    steps,
  };
};
