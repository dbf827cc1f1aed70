import type {
  ConfigError,
  IdempotencyConflict,
  InvalidInput,
  JobNotFound,
  RunConfigValidationInvalid,
  Unavailable,
} from '../domain/problems.ts';
import type { LabelInput } from '../domain/text.ts';

/** A launch as a client asks for it; nothing in it is checked yet. */
export interface LaunchRunInput {
  job: string;
  config?: unknown;
  idempotencyKey?: string | null;
  correlationId?: string | null;
  priority?: number | null;
  customer?: string | null;
  labels?: readonly LabelInput[] | null;
  estimatedTokens?: number | null;
  availableAt?: Date | null;
  serialKey?: string | null;
  debounce?: DebounceInput | null;
  /** W3C traceparent of whoever asks; a wrong one is as none. No part of the input that a key stands for. */
  traceparent?: string | null;
  steps?: readonly LaunchStepInput[] | null;
}
export interface DebounceInput {
  key: string;
  seconds: number;
  maxSeconds?: number | null;
  collect?: boolean | null;
}
export interface LaunchStepInput {
  step: string;
  estimatedTokens?: number | null;
  priority?: number | null;
  maxAttempts?: number | null;
  serialKey?: string | null;
}

export interface LaunchRunSuccess {
  kind: 'LaunchRunSuccess';
  runId: string;
  /** The key was used before with the same input; this is the run that it made. */
  replayed: boolean;
  /** It was debounced, and changed a run that waits. */
  joined?: boolean;
  /** Position in the change log before the run's first change. */
  cursor: string;
}
export type LaunchRunOutcome =
  | LaunchRunSuccess
  | RunConfigValidationInvalid
  | JobNotFound
  | IdempotencyConflict
  | InvalidInput
  | Unavailable;

export interface PublishEventInput {
  topic: string;
  payload: unknown;
  idempotencyKey?: string | null;
  correlationId?: string | null;
  customer?: string | null;
  labels?: readonly LabelInput[] | null;
  /** W3C traceparent of whoever sent it; a wrong one is as none. No part of what a key stands for. */
  traceparent?: string | null;
}

/** An event as a broker delivered it. */
export interface ReceivedEventInput {
  topic: string;
  payload: unknown;
  /** Its idempotency key where the payload names none. */
  fallbackKey: string;
  /** As in PublishEventInput. */
  traceparent?: string | null;
}

/** A matching route that did not launch, and why. */
export interface RouteRefusal {
  route: string;
  message: string;
  errors: ConfigError[];
}
export interface PublishEventSuccess {
  kind: 'PublishEventSuccess';
  eventId: string;
  runIds: string[];
  refusals: RouteRefusal[];
  replayed: boolean;
  cursor: string;
}
export type PublishEventOutcome = PublishEventSuccess | IdempotencyConflict | InvalidInput | Unavailable;

/** How work comes in. Outcomes are in input order, each on its own. */
export interface Intake {
  launchRuns(inputs: readonly LaunchRunInput[]): Promise<LaunchRunOutcome[]>;
  publishEvents(inputs: readonly PublishEventInput[]): Promise<PublishEventOutcome[]>;
  receiveEvent(input: ReceivedEventInput): Promise<PublishEventOutcome>;
}
