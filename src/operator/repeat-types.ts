import type {
  IdempotencyConflict,
  IllegalState,
  InvalidInput,
  NotFound,
  RunConfigValidationInvalid,
  Unavailable,
} from '../domain/problems.ts';
import type { LaunchRunSuccess, PublishEventSuccess } from '../intake/types.ts';

export interface RerunInput {
  runId: string;
  /** Default true. */
  onlyFailed?: boolean | null;
  idempotencyKey?: string | null;
  /** In place of the old run's. */
  config?: unknown;
  /** Of all tasks that run; default 100 above what each had. */
  priority?: number | null;
  /** W3C traceparent of whoever asks; absent or wrong: the run stays in the trace of the old one. */
  traceparent?: string | null;
}
export type RerunOutcome =
  | LaunchRunSuccess
  | RunConfigValidationInvalid
  | NotFound
  | IllegalState
  | IdempotencyConflict
  | InvalidInput
  | Unavailable;

export type ReplayEventOutcome =
  | PublishEventSuccess
  | NotFound
  | IdempotencyConflict
  | InvalidInput
  | Unavailable;
