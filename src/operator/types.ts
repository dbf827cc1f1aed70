import type { StepCondition } from '../domain/job-definition.ts';
import type { IllegalState, InvalidInput, NotFound } from '../domain/problems.ts';
import type { Backoff } from '../domain/retry-policy.ts';
import type { RunStatus, TaskStatus } from '../domain/status.ts';
import type { DeadLetterFilter } from '../read/dead-letters.ts';
import type { RunFilter } from '../read/run-filter.ts';
import type { TaskFilter } from '../read/task-filter.ts';
import type { PreviewInput, RoutePreview } from './preview-types.ts';
import type { ReplayEventOutcome, RerunInput, RerunOutcome } from './repeat-types.ts';

/** Who acts, as the audit log records it. */
export interface Actor {
  name: string;
  requestId: string | null;
}

/** What clients send; nothing in it is checked yet. An absent or null field takes its default. */
export interface SaveJobInput {
  name: string;
  description?: string | null;
  configSchema?: unknown;
  steps: readonly JobStepInput[];
  enabled?: boolean | null;
  ifVersion?: number | null;
}
export interface JobStepInput {
  name: string;
  agent: string;
  dependsOn?: readonly string[] | null;
  when?: StepCondition | null;
  cancellable?: boolean | null;
  optional?: boolean | null;
  input?: unknown;
  assetKey?: string | null;
  readsAssetKeys?: readonly string[] | null;
  maxAttempts?: number | null;
}
export interface SaveAgentInput {
  name: string;
  description?: string | null;
  dispatch: DispatchInput;
  queue?: string | null;
  throttles?: readonly string[] | null;
  maxConcurrentTasks?: number | null;
  retryPolicy?: RetryPolicyInput | null;
  leaseSeconds?: number | null;
  timeoutSeconds?: number | null;
  defaultModel?: string | null;
  /** Decimal text. */
  computeCostPerHour?: string | null;
  ifVersion?: number | null;
}
/** Exactly one of the fields is set. Webhooks are refused. */
export interface DispatchInput {
  pull?: { batchBySerialKey?: boolean | null } | null;
  inline?: { handler: string } | null;
  webhook?: { url: string; secret?: string | null; timeoutSeconds?: number | null } | null;
}
export interface RetryPolicyInput {
  maxAttempts?: number | null;
  backoff?: Backoff | null;
  initialDelaySeconds?: number | null;
  maxDelaySeconds?: number | null;
  jitter?: number | null;
  overrides?: readonly RetryOverrideInput[] | null;
}
export interface RetryOverrideInput {
  code: string;
  retry: boolean;
  delaySeconds?: number | null;
  countsAttempt?: boolean | null;
}
export interface SaveThrottleInput {
  name: string;
  maxConcurrentTasks?: number | null;
  maxTokensPerMinute?: number | null;
  maxRequestsPerMinute?: number | null;
  maxRequestsPerSecond?: number | null;
  ifVersion?: number | null;
}
export interface SaveQueueInput {
  name: string;
  pool: string;
  weight?: number | null;
  sharedWeight?: number | null;
  ifVersion?: number | null;
}
export interface SavePoolInput {
  name: string;
  slotsPerReplica: number;
  elastic?: boolean | null;
  ifVersion?: number | null;
}
export interface SaveRouteInput {
  name: string;
  topic: string;
  job: string;
  config?: unknown;
  customer?: unknown;
  labels?: unknown;
  serialKey?: unknown;
  estimatedTokens?: unknown;
  priority?: number | null;
  enabled?: boolean | null;
  ifVersion?: number | null;
}
export interface PauseInput {
  name: string;
  reason?: string | null;
}
export interface NameInput {
  name: string;
}

/** The object as it is now; version is the old one when nothing changed. */
export interface SaveSuccess<Kind extends string> {
  kind: Kind;
  /** UUID of the object. */
  id: string;
  name: string;
  version: number;
}
export interface DeleteSuccess {
  kind: 'DeleteSuccess';
  /** UUID of what was deleted. */
  id: string;
}

export type SaveOutcome<Kind extends string> = SaveSuccess<Kind> | InvalidInput | NotFound | IllegalState;
export type SaveJobOutcome = SaveOutcome<'SaveJobSuccess'>;
export type SaveAgentOutcome = SaveOutcome<'SaveAgentSuccess'>;
export type SaveThrottleOutcome = SaveOutcome<'SaveThrottleSuccess'>;
export type SaveQueueOutcome = SaveOutcome<'SaveQueueSuccess'>;
export type SavePoolOutcome = SaveOutcome<'SavePoolSuccess'>;
export type SaveRouteOutcome = SaveOutcome<'SaveRouteSuccess'>;
/** A job and the route that launches it. */
export interface InstallJobInput {
  job: SaveJobInput;
  route: SaveRouteInput;
}
export type InstallJobOutcome = { kind: 'InstallJobSuccess' } | InvalidInput | NotFound | IllegalState;
export type DeleteOutcome = DeleteSuccess | NotFound | IllegalState;

/**
 * Changes of what the product is configured to do. A save replaces the whole object, is idempotent by name and raises
 * the version by one when something changed; so do pausing and resuming, which a save leaves alone. Every change
 * has one audit entry in its own transaction; what changes nothing, or is refused, has none.
 */
export interface Configuration {
  saveJob(input: SaveJobInput, actor: Actor): Promise<SaveJobOutcome>;
  saveAgent(input: SaveAgentInput, actor: Actor): Promise<SaveAgentOutcome>;
  saveThrottle(input: SaveThrottleInput, actor: Actor): Promise<SaveThrottleOutcome>;
  saveQueue(input: SaveQueueInput, actor: Actor): Promise<SaveQueueOutcome>;
  savePool(input: SavePoolInput, actor: Actor): Promise<SavePoolOutcome>;
  saveRoute(input: SaveRouteInput, actor: Actor): Promise<SaveRouteOutcome>;
  /**
   * Of what is shipped: creates a job with its route, or brings the job up to date. What somebody switched off since stays
   * so: the job is not enabled, and the route not created again.
   */
  installJob(input: InstallJobInput, actor: Actor): Promise<InstallJobOutcome>;
  deleteRoute(input: NameInput, actor: Actor): Promise<DeleteOutcome>;
  /** What would be launched for a message, by the routes' names. Nothing is written. */
  previewRoutes(input: PreviewInput): Promise<RoutePreview[] | InvalidInput>;
  pauseQueue(input: PauseInput, actor: Actor): Promise<SaveQueueOutcome>;
  resumeQueue(input: NameInput, actor: Actor): Promise<SaveQueueOutcome>;
  pauseAgent(input: PauseInput, actor: Actor): Promise<SaveAgentOutcome>;
  resumeAgent(input: NameInput, actor: Actor): Promise<SaveAgentOutcome>;
}

export interface TaskActionSuccess {
  kind: 'TaskActionSuccess';
  /** UUID. */
  taskId: string;
  taskStatus: TaskStatus;
}
export interface RunActionSuccess {
  kind: 'RunActionSuccess';
  /** UUID. */
  runId: string;
  runStatus: RunStatus;
}
/** matched counts up to the limit; hasMore: call again. A dry run changes nothing. */
export interface BulkSuccess {
  kind: 'BulkSuccess';
  matched: number;
  changed: number;
  hasMore: boolean;
}
export type TaskActionOutcome = TaskActionSuccess | NotFound | IllegalState | InvalidInput;
export type RunActionOutcome = RunActionSuccess | NotFound | IllegalState | InvalidInput;
export type BulkOutcome = BulkSuccess | InvalidInput;

export interface BulkInput<Filter> {
  filter: Filter;
  reason?: string | null;
  dryRun?: boolean | null;
  /** Default and most 10,000. */
  limit?: number | null;
}

/**
 * What operators do to work that is there. What waits is cancelled at once; what is executed is asked to stop and ends
 * when its worker reports, at the latest after the grace time. Work that is protected (cancellable: false) is touched by
 * cancelTask alone. Each action has one audit entry in its transaction; ids are UUIDs.
 */
export interface Actions {
  cancelTask(input: { taskId: string; reason?: string | null }, actor: Actor): Promise<TaskActionOutcome>;
  cancelRun(input: { runId: string; reason?: string | null }, actor: Actor): Promise<RunActionOutcome>;
  /** An empty filter is refused. */
  cancelTasks(input: BulkInput<TaskFilter>, actor: Actor): Promise<BulkOutcome>;
  cancelRuns(input: BulkInput<RunFilter>, actor: Actor): Promise<BulkOutcome>;
  /** Of a task that is scheduled or backs off: it is ready at once, with a priority 100 above what it had. */
  runTaskNow(input: { taskId: string }, actor: Actor): Promise<TaskActionOutcome>;
  /** Of a task that is not over: where it waits, or for its retries. */
  setTaskPriority(input: { taskId: string; priority: number }, actor: Actor): Promise<TaskActionOutcome>;
  /** Of a terminal task: it is hidden, its payloads are erased, its usage and cost stay. */
  deleteTask(input: { taskId: string; reason?: string | null }, actor: Actor): Promise<TaskActionOutcome>;
  /** Of a terminal run: a new run of the same version of its job; what completed is taken over unless all is asked for. */
  rerun(input: RerunInput, actor: Actor): Promise<RerunOutcome>;
  /** Of a failed or cancelled task; priority is 100 above what it had unless given. */
  retryTask(input: { taskId: string; priority?: number | null }, actor: Actor): Promise<TaskActionOutcome>;
  retryTasks(input: BulkInput<TaskFilter> & { priority?: number | null }, actor: Actor): Promise<BulkOutcome>;
  replayDeadLetter(input: { id: string; priority?: number | null }, actor: Actor): Promise<TaskActionOutcome>;
  replayDeadLetters(
    input: BulkInput<DeadLetterFilter> & { priority?: number | null },
    actor: Actor,
  ): Promise<BulkOutcome>;
  /** Launches what the event's routes launch by now and did not yet; one that was rejected is checked again. */
  replayEvent(input: { eventId: string }, actor: Actor): Promise<ReplayEventOutcome>;
  /** The letters alone: their tasks stay failed. */
  purgeDeadLetters(
    input: BulkInput<DeadLetterFilter> & { reason: string },
    actor: Actor,
  ): Promise<BulkOutcome>;
}
