import type { Json } from '../domain/json.ts';
import type { ErrorKind } from '../domain/retry-policy.ts';
import type { AttemptStatus, RunStatus, TaskStatus } from '../domain/status.ts';

/**
 * A running attempt ends: its lease goes, its row comes, and where task_to says so its task ends with it, from
 * PROCESSING. JSON names are the column names of the SQL that applies it; what is absent is null there, and false.
 */
export interface AttemptEnd {
  attempt_id: string;
  status: Exclude<AttemptStatus, 'RUNNING'>;
  counted?: boolean | undefined;
  sanitized?: boolean | undefined;
  digest?: string | undefined;
  error_code?: string | undefined;
  error_kind?: ErrorKind | undefined;
  error_message?: string | undefined;
  confidence?: number | undefined;
  trace_id?: string | undefined;
  external_run_id?: string | undefined;
  task_to?: TaskEnd['to_status'] | undefined;
  output?: { value: Json } | undefined;
}

/** A task becomes terminal by something else than its running attempt. */
export interface TaskEnd {
  task_id: string;
  run_id: string;
  from_status: TaskStatus;
  to_status: 'COMPLETED' | 'FAILED' | 'CANCELLED';
  /** Its new number in the change log. */
  sequence: number;
  attempt_id: string | null;
  attempt_number: number | null;
  output: { value: Json } | null;
  confidence: number | null;
  error_code: string | null;
  error_kind: ErrorKind | null;
  error_message: string | null;
  reason: string | null;
}

/** A task is enqueued: again after an attempt, or for the first time when its dependencies are over. */
export interface TaskEnqueued {
  task_id: string;
  run_id: string;
  agent_id: string;
  /** Null: it was spawned just now. */
  from_status: TaskStatus | null;
  sequence: number;
  /** Attempts so far. */
  attempts: number;
  attempt_id: string | null;
  attempt_number: number | null;
  /** 0 is at once. */
  delay_seconds: number;
  delay_reason: 'NOT_BEFORE' | 'RETRY_BACKOFF';
  /** When the delay ends, where that was asked for as a time. */
  not_before?: string | null | undefined;
  /** The rendered input of an unblocked step; null leaves the input as it is. */
  input: { value: Json } | null;
  error_code: string | null;
  reason: string | null;
}

/** A time that was asked for, and the seconds until then. */
export interface Later {
  at: string;
  delaySeconds: number;
}

/** A task that was never enqueued before. */
export const enqueuedFirst = (
  task: { id: string; runId: string; agentId: string },
  how: { from: 'BLOCKED' | null; sequence: number; input: { value: Json } | null; later: Later | null },
): TaskEnqueued => ({
  task_id: task.id,
  run_id: task.runId,
  agent_id: task.agentId,
  from_status: how.from,
  sequence: how.sequence,
  attempts: 0,
  attempt_id: null,
  attempt_number: null,
  delay_seconds: how.later?.delaySeconds ?? 0,
  delay_reason: 'NOT_BEFORE',
  not_before: how.later?.at,
  input: how.input,
  error_code: null,
  reason: null,
});

export interface RunChangeRow {
  run_id: string;
  closed_tasks: number;
  unblocked_tasks?: number | undefined;
  /** New tasks of the run, and those of them that are blocked. */
  spawned_tasks?: number | undefined;
  newly_blocked_tasks?: number | undefined;
  /** Null: the status stays. */
  to_status: RunStatus | null;
  from_status: RunStatus | null;
  sequence: number;
  failed_task_id?: string | undefined;
  reason: string | null;
}

/** Everything that one transaction changes about attempts, tasks and runs. */
export interface Transition {
  attemptEnds: AttemptEnd[];
  taskEnds: TaskEnd[];
  enqueued: TaskEnqueued[];
  runs: RunChangeRow[];
}
