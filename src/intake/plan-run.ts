import { newUuid, toPublicId } from '../domain/ids.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import type { InvalidInput, RunConfigValidationInvalid } from '../domain/problems.ts';
import { invalidInput } from '../domain/problems.ts';
import { renderTemplate, runContext } from '../domain/template.ts';
import type { LaunchableJob } from './job-catalog.ts';
import type { Launch } from './parse-launch.ts';

/** The rows of a run and its tasks, as they will be inserted. Dates and JSON are in their JSON form. */
export interface RunRow {
  id: string;
  job_id: string;
  job_version: number;
  config: JsonObject;
  correlation_id: string;
  idempotency_key: string | null;
  serial_key: string | null;
  customer: string | null;
  labels: Record<string, string>;
  priority: number;
  event_id: string | null;
  route: string | null;
  total_tasks: number;
  blocked_tasks: number;
  available_at: string | null;
}
export interface TaskRow {
  id: string;
  run_id: string;
  step: string;
  agent_id: string;
  blocked: boolean;
  priority: number;
  serial_key: string | null;
  /** Null: the run's config is the input, or the template is rendered when the dependencies are over. */
  input: { value: Json } | null;
  depends_on: string[] | null;
  runs_when: string;
  optional: boolean;
  cancellable: boolean;
  max_attempts: number | null;
  estimated_tokens: number | null;
}
export interface RunPlan {
  run: RunRow;
  tasks: TaskRow[];
}

/** The event that launches the run, as templates see it. */
export interface LaunchingEvent {
  id: string;
  route: string;
  context: JsonObject;
}

/** Decides what a launch inserts, or why it cannot be launched. Pure but for the new ids. */
export function planRun(
  launch: Omit<Launch, 'job'>,
  job: LaunchableJob,
  event: LaunchingEvent | null,
): RunPlan | InvalidInput | RunConfigValidationInvalid {
  const errors = job.validateConfig(launch.config);
  if (errors.length > 0) {
    const message = `The config does not satisfy the schema of job ${job.name}: ${errors.map((e) => e.message).join(' ')}`;
    return { kind: 'RunConfigValidationInvalid', message, errors };
  }
  const unknownStep = [...launch.steps.keys()].find((name) => !job.steps.some((step) => step.name === name));
  if (unknownStep !== undefined) return invalidInput('steps', `Job ${job.name} has no step ${unknownStep}.`);

  const runId = newUuid();
  const correlationId = launch.correlationId ?? toPublicId('run', runId);
  const run: RunRow = {
    id: runId,
    job_id: job.id,
    job_version: job.version,
    config: launch.config,
    correlation_id: correlationId,
    idempotency_key: launch.key?.text ?? null,
    serial_key: launch.serialKey,
    customer: launch.customer,
    labels: launch.labels,
    priority: launch.priority,
    event_id: event?.id ?? null,
    route: event?.route ?? null,
    total_tasks: job.steps.length,
    blocked_tasks: job.steps.filter((step) => step.dependsOn.length > 0).length,
    available_at: launch.availableAt?.toISOString() ?? null,
  };
  const context = {
    config: launch.config,
    run: runContext({ ...run, correlationId: run.correlation_id, job: job.name }),
    event: event?.context ?? null,
    steps: {},
  };
  const tasks: TaskRow[] = [];
  for (const step of job.steps) {
    const override = launch.steps.get(step.name);
    const blocked = step.dependsOn.length > 0;
    let input: TaskRow['input'] = null;
    if (!blocked && step.input !== null) {
      const rendered = renderTemplate(step.input, context);
      if (!rendered.ok) {
        return invalidInput(
          'config',
          `The input template of step ${step.name} failed for this config: ${rendered.message}`,
        );
      }
      input = { value: rendered.value };
    }
    tasks.push({
      id: newUuid(),
      run_id: runId,
      step: step.name,
      agent_id: step.agentId,
      blocked,
      priority: override?.priority ?? launch.priority,
      serial_key: override?.serialKey ?? launch.serialKey,
      input,
      depends_on: blocked ? step.dependsOn : null,
      runs_when: step.when,
      optional: step.optional,
      cancellable: step.cancellable,
      max_attempts: override?.maxAttempts ?? step.maxAttempts,
      estimated_tokens: override?.estimatedTokens ?? launch.estimatedTokens,
    });
  }
  return { run, tasks };
}

export const isPlan = (value: RunPlan | { kind: string }): value is RunPlan => !('kind' in value);
