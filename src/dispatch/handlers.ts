import type { ErrorKind } from '../domain/retry-policy.ts';
import type {
  AttemptEventInput,
  MaterializationInput,
  ModelUsageInput,
  SpawnTaskInput,
} from '../result/types.ts';

/** A task as a handler in the server process gets it. Ids are public ids. */
export interface InlineTask {
  readonly attemptId: string;
  readonly taskId: string;
  readonly runId: string;
  agent: string;
  step: string;
  /** 1 for the first attempt. */
  number: number;
  input: unknown;
  labels: Record<string, string>;
  customer: string | null;
  correlationId: string;
  /** Of the event that launched the run, if one did. */
  readonly eventId: string | null;
  serialKey: string | null;
  /** W3C trace context for the work. */
  readonly traceparent: string;
  checkpoint: unknown;
  /**
   * Tells what the attempt does, in order, as appendAttemptEvents does for workers; answers the sequence of its last event.
   * With firstSequence a repeated call stores nothing twice. Throws a HandlerError when nothing is stored. The result is
   * not reported before it settles.
   */
  appendEvents(events: readonly AttemptEventInput[], firstSequence?: number): Promise<number>;
}

export interface InlineResult {
  output?: unknown;
  usage?: readonly ModelUsageInput[];
  confidence?: number;
  materializations?: readonly MaterializationInput[];
  /** Follow-up tasks of the same run, enqueued with the result. */
  spawn?: readonly SpawnTaskInput[];
}

/**
 * Executes tasks of inline agents. The signal aborts when the task is cancelled, runs into its timeout, loses its lease
 * or the server stops; what the handler does after that is not waited for. Throw a HandlerError to say what went wrong;
 * any other error is TRANSIENT with the code HANDLER_ERROR.
 */
export type InlineHandler = (task: InlineTask, signal: AbortSignal) => Promise<InlineResult> | InlineResult;

export class HandlerError extends Error {
  readonly code: string;
  readonly kind: ErrorKind;
  readonly retryAfterSeconds: number | null;

  constructor(code: string, message: string, options: { kind?: ErrorKind; retryAfterSeconds?: number } = {}) {
    super(message);
    this.code = code;
    this.kind = options.kind ?? 'TRANSIENT';
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
  }
}
