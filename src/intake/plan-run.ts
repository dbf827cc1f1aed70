import { newUuid, toPublicId } from '../domain/ids.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import type { InvalidInput, RunConfigValidationInvalid } from '../domain/problems.ts';
import { invalidInput } from '../domain/problems.ts';
import { renderTemplate, runContext } from '../domain/template.ts';
import type { LaunchableJob } from './job-catalog.ts';
import type { Launch } from './parse-launch.ts';
import { configInvalid } from './validate-config.ts';

/**
 * The rows of a run and its tasks, as they will be inserted. Dates and JSON are in their JSON form. What is undefined is
 * not sent: for a launch like most, reading nulls and defaults would cost the database as much as all the inserts.
 */
export interface RunRow {
  id: string;
  job_id: string;
  job_version: number;
  config: JsonObject;
  correlation_id: string;
  idempotency_key: string | undefined;
  serial_key: string | undefined;
  debounce_key: string | undefined;
  customer: string | undefined;
  /** Absent: none. */
  labels: Record<string, string> | undefined;
  priority: number;
  event_id: string | undefined;
  route: string | undefined;
  total_tasks: number;
  blocked_tasks: number;
  available_at: string | undefined;
  /** Packed; absent: nobody gave one. */
  trace_context?: string | undefined;
}
export interface TaskRow {
  id: string;
  run_id: string;
  step: string;
  agent_id: string;
  /** Absent: the run's. */
  priority: number | undefined;
  serial_key: string | undefined;
  /** Absent: the run's config is the input, or the template is rendered when the dependencies are over. */
  input: { value: Json } | undefined;
  /** Absent: the task is not blocked. */
  depends_on: string[] | undefined;
  /** Absent: DEPENDENCIES_COMPLETED. */
  runs_when: string | undefined;
  /** Absent: false. */
  optional: true | undefined;
  /** Absent: true. */
  cancellable: false | undefined;
  max_attempts: number | undefined;
  estimated_tokens: number | undefined;
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
export const planRun = (
  launch: Omit<Launch, 'job'>,
  job: LaunchableJob,
  event: LaunchingEvent | null,
): RunPlan | InvalidInput | RunConfigValidationInvalid =>
  refusalOf(launch, job) ?? planChecked(launch, job, event, newUuid());

/** Why the job does not take this launch; null when it does. */
export function refusalOf(
  launch: Pick<Launch, 'config' | 'steps'>,
  job: LaunchableJob,
): InvalidInput | RunConfigValidationInvalid | null {
  const errors = job.validateConfig(launch.config);
  if (errors.length > 0) return configInvalid(job.name, errors);
  const named = [...launch.steps.keys()];
  const unknown = named.findIndex((name) => !job.steps.some((step) => step.name === name));
  return unknown < 0
    ? null
    : invalidInput(`steps[${unknown}].step`, `Job ${job.name} has no step ${named[unknown]}.`);
}

/** The plan of a launch that the job takes, or why an input cannot be rendered. */
export function planChecked(
  launch: Omit<Launch, 'job'>,
  job: LaunchableJob,
  event: LaunchingEvent | null,
  runId: string,
): RunPlan | InvalidInput {
  const correlationId = launch.correlationId ?? toPublicId('run', runId);
  const run: RunRow = {
    id: runId,
    job_id: job.id,
    job_version: job.version,
    config: launch.config,
    correlation_id: correlationId,
    idempotency_key: launch.key?.text,
    serial_key: launch.serialKey ?? undefined,
    debounce_key: launch.debounce?.key,
    customer: launch.customer ?? undefined,
    labels: isEmpty(launch.labels) ? undefined : launch.labels,
    priority: launch.priority,
    event_id: event?.id,
    route: event?.route,
    total_tasks: job.steps.length,
    blocked_tasks: job.steps.filter((step) => step.dependsOn.length > 0).length,
    available_at: launch.availableAt?.toISOString(),
  };
  let context: Record<string, unknown> | undefined;
  const tasks: TaskRow[] = [];
  for (const step of job.steps) {
    const override = launch.steps.get(step.name);
    const blocked = step.dependsOn.length > 0;
    let input: TaskRow['input'];
    if (!blocked && step.input !== null) {
      context ??= {
        config: launch.config,
        run: runContext({ ...launch, id: runId, correlationId, job: job.name }),
        event: event?.context ?? null,
        steps: {},
      };
      const rendered = renderTemplate(step.input, context, 'input');
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
      priority: override?.priority ?? undefined,
      serial_key: override?.serialKey ?? launch.serialKey ?? undefined,
      input,
      depends_on: blocked ? step.dependsOn : undefined,
      runs_when: step.when === 'DEPENDENCIES_COMPLETED' ? undefined : step.when,
      optional: step.optional || undefined,
      cancellable: step.cancellable ? undefined : false,
      max_attempts: override?.maxAttempts ?? step.maxAttempts ?? undefined,
      estimated_tokens: override?.estimatedTokens ?? launch.estimatedTokens ?? undefined,
    });
  }
  return { run, tasks };
}

function isEmpty(object: object): boolean {
  for (const _ in object) return false;
  return true;
}

export const isPlan = (value: RunPlan | { kind: string }): value is RunPlan => !('kind' in value);
