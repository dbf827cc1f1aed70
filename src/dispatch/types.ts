import type { InvalidInput, Unavailable } from '../domain/problems.ts';
import type { ModelUsageInput } from '../result/types.ts';

export interface ClaimTasksInput {
  workerId: string;
  name?: string | null;
  agents?: readonly string[] | null;
  pool?: string | null;
  limit: number;
  slots?: number | null;
  waitSeconds?: number | null;
  leaseSeconds?: number | null;
  idempotencyKey?: string | null;
  client?: string | null;
}

/** One claimed task: everything that its execution needs. Ids are UUIDs. */
export interface Assignment {
  attemptId: string;
  taskId: string;
  runId: string;
  agentId: string;
  agent: string;
  step: string;
  number: number;
  input: unknown;
  labels: Record<string, string>;
  customer: string | null;
  correlationId: string;
  eventId: string | null;
  serialKey: string | null;
  checkpoint: unknown;
  leaseToken: string;
  leaseSeconds: number;
  startedAt: Date;
  leaseExpiresAt: Date;
  timeoutSeconds: number | null;
  traceparent: string;
}
export interface ClaimTasksSuccess {
  kind: 'ClaimTasksSuccess';
  assignments: Assignment[];
  retryAfterSeconds: number;
}
export type ClaimTasksOutcome = ClaimTasksSuccess | InvalidInput | Unavailable;

export interface ExtendLeaseInput {
  attemptId: string;
  leaseToken: string;
  progress?: number | null;
  checkpoint?: unknown;
  usage?: readonly ModelUsageInput[] | null;
}
export interface LeaseStatus {
  attemptId: string;
  state: 'HELD' | 'CANCEL_REQUESTED' | 'STALE';
  leaseSeconds: number | null;
  leaseExpiresAt: Date | null;
  cancelDeadline: Date | null;
}

/** Which agents a worker would claim for: by their names, by a pool, or by both. */
export interface WorkHintsOf {
  agents?: readonly string[] | null;
  pool?: string | null;
}
/** A hint that a claim is worth a call for these agents; none: that the server is there. */
export interface WorkAvailable {
  agents: readonly string[];
}
/** What pull workers sleep on. */
export interface WorkHintSource {
  open(of: WorkHintsOf): Promise<AsyncIterableIterator<WorkAvailable>>;
}

/** What pull workers use. */
export interface PullDispatch {
  /** Waits up to waitSeconds for work; the signal ends the wait when the client left. */
  claimTasks(input: ClaimTasksInput, signal?: AbortSignal): Promise<ClaimTasksOutcome>;
  /** In input order. Attempt ids here are the public ids that the worker was given. */
  extendLeases(leases: readonly ExtendLeaseInput[]): Promise<LeaseStatus[]>;
}
