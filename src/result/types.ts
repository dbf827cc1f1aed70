import type { StepCondition } from '../domain/job-definition.ts';
import type { InvalidInput, LeaseTokenInvalid, ResultConflict, Unavailable } from '../domain/problems.ts';
import type { ErrorKind } from '../domain/retry-policy.ts';
import type { ResultStatus, TaskStatus } from '../domain/status.ts';
import type { LabelInput } from '../domain/text.ts';

export interface ModelUsageInput {
  model?: string | null;
  provider?: string | null;
  inputTokens?: number | null;
  cacheReadTokens?: number | null;
  cacheWriteTokens?: number | null;
  cacheWrite1hTokens?: number | null;
  outputTokens?: number | null;
  reasoningTokens?: number | null;
  requests?: number | null;
  /** Exact decimal text in USD. */
  cost?: string | null;
  responseId?: string | null;
  at?: Date | null;
  raw?: unknown;
}
export interface ExecutionErrorInput {
  code: string;
  message?: string | null;
  kind?: ErrorKind | null;
  retryAfterSeconds?: number | null;
  throttle?: string | null;
}
export interface MaterializationInput {
  assetKey: string;
  partition?: string | null;
  metadata?: unknown;
}

/** A task that a result asks for, in the same run. */
export interface SpawnTaskInput {
  step: string;
  agent: string;
  input?: unknown;
  dependsOn?: readonly string[] | null;
  when?: StepCondition | null;
  optional?: boolean | null;
  priority?: number | null;
  estimatedTokens?: number | null;
  maxAttempts?: number | null;
  serialKey?: string | null;
  labels?: readonly LabelInput[] | null;
  availableAt?: Date | null;
}

/** A result as a worker reports it; nothing in it is checked yet. attemptId is the public id. */
export interface ReportResultInput {
  attemptId: string;
  leaseToken: string;
  status: ResultStatus;
  output?: unknown;
  error?: ExecutionErrorInput | null;
  usage?: readonly ModelUsageInput[] | null;
  confidence?: number | null;
  traceId?: string | null;
  externalRunId?: string | null;
  materializations?: readonly MaterializationInput[] | null;
  spawn?: readonly SpawnTaskInput[] | null;
  /** W3C traceparent of whoever reports. */
  traceparent?: string | null;
}

export interface ReportResultSuccess {
  kind: 'ReportResultSuccess';
  outcome: 'APPLIED' | 'REPLAYED' | 'SUPERSEDED';
  /** UUIDs. */
  taskId: string;
  attemptId: string;
  taskStatus: TaskStatus;
}
export type ReportResultOutcome =
  | ReportResultSuccess
  | LeaseTokenInvalid
  | ResultConflict
  | InvalidInput
  | Unavailable;

/** How work comes back. Outcomes are in input order, each on its own. */
export interface Results {
  reportResults(inputs: readonly ReportResultInput[]): Promise<ReportResultOutcome[]>;
}

/** What an agent tells of an attempt; nothing in it is checked yet. */
export interface AttemptEventInput {
  type: string;
  data?: unknown;
  /** Default: when it is appended. */
  at?: Date | null;
}
export interface AppendAttemptEventsInput {
  /** attemptId is the public id. */
  lease: { attemptId: string; leaseToken: string };
  events: readonly AttemptEventInput[];
  firstSequence?: number | null;
}
export interface AppendAttemptEventsSuccess {
  kind: 'AppendAttemptEventsSuccess';
  lastSequence: number;
}
export type AppendAttemptEventsOutcome =
  | AppendAttemptEventsSuccess
  | LeaseTokenInvalid
  | InvalidInput
  | Unavailable;

export interface AttemptEvents {
  /** In order, each once: events that were appended under the same sequence before are left out. */
  append(input: AppendAttemptEventsInput): Promise<AppendAttemptEventsOutcome>;
  /** Of an attempt that this process executes; its id is a UUID. */
  appendTo(
    attemptId: string,
    input: Omit<AppendAttemptEventsInput, 'lease'>,
  ): Promise<AppendAttemptEventsOutcome>;
}
