import type { ExecutionError } from '../domain/execution-error.ts';
import type { Json } from '../domain/json.ts';
import type { AttemptStatus, RunStatus, TaskStatus } from '../domain/status.ts';

/** A running attempt ends: its lease goes, its row comes. JSON names are the column names of the SQL that applies it. */
export interface AttemptEnd {
  attempt_id: string;
  status: Exclude<AttemptStatus, 'RUNNING'>;
  counted: boolean;
  sanitized: boolean;
  digest: string | null;
  error_code: string | null;
  error_kind: string | null;
  error_message: string | null;
  error_retryable: boolean | null;
  confidence: number | null;
  trace_id: string | null;
  external_run_id: string | null;
}

/** A task becomes terminal. */
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
  error: ExecutionError | null;
  reason: string | null;
}

/** A task is enqueued: again after an attempt, or for the first time when its dependencies are over. */
export interface TaskEnqueued {
  task_id: string;
  run_id: string;
  agent_id: string;
  serial_key: string | null;
  from_status: TaskStatus;
  sequence: number;
  /** Attempts so far. */
  attempts: number;
  attempt_id: string | null;
  attempt_number: number | null;
  /** 0 is at once. */
  delay_seconds: number;
  delay_reason: 'NOT_BEFORE' | 'RETRY_BACKOFF';
  /** The rendered input of an unblocked step; null leaves the input as it is. */
  input: { value: Json } | null;
  error_code: string | null;
  reason: string | null;
}

export interface RunChangeRow {
  run_id: string;
  closed_tasks: number;
  unblocked_tasks: number;
  /** Null: the status stays. */
  to_status: RunStatus | null;
  from_status: RunStatus | null;
  sequence: number;
  failed_task_id: string | null;
}

/** Everything that one transaction changes about attempts, tasks and runs. */
export interface Transition {
  attemptEnds: AttemptEnd[];
  taskEnds: TaskEnd[];
  enqueued: TaskEnqueued[];
  runs: RunChangeRow[];
}
