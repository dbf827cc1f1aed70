import type { TraceContext, TracedWork } from './trace-context.ts';

/**
 * Hears of work on its way, after the commits that move it. It takes no part in them and must not throw. Where there is
 * none, nothing is put together for it. Times are milliseconds since 1970 by this process's clock, ids UUIDs.
 */
export interface WorkObserver {
  /** A launch, an event or a rerun was taken in, or refused. */
  admitted(work: AdmittedWork): void;
  /** Tasks were leased, each its attempt. */
  claimed(work: ClaimedWork): void;
  /** An attempt is in the hands of a worker or a handler. */
  dispatched(work: DispatchedWork): void;
  /** Results were recorded; first those attempts that ended by them. */
  recorded(attempts: readonly EndedAttempt[], results: readonly RecordedResult[]): void;
  /** What the worker of an attempt continues, as a W3C traceparent. */
  traceparent(work: TracedWork): string;
}

export interface AdmittedWork {
  kind: 'LAUNCH' | 'EVENT' | 'RERUN';
  /** The job's name or the event's topic; of a rerun the id of the old run. */
  of: string;
  /** The event or the run that was made; null: none was. */
  id: string | null;
  correlationId: string | null;
  runIds: readonly string[];
  /** Routes that refused the event. */
  refusals: number;
  /** It had been taken in before. */
  replayed: boolean;
  /** False: it joined a run that waits. */
  isNew: boolean;
  /** Why it was refused. */
  problem: string | null;
  payload: unknown;
  traceContext: TraceContext | null;
  startedAt: number;
}

/** A task with its lease. */
export interface LeasedTask extends TracedWork {
  taskId: string;
  agentId: string;
  agent: string;
  step: string;
  number: number;
  correlationId: string;
}

export interface ClaimedWork {
  tasks: readonly LeasedTask[];
  workerId: string;
  startedAt: number;
}

export interface DispatchedWork {
  task: LeasedTask;
  to: 'WORKER' | 'HANDLER';
  workerId: string;
  claimedAt: number;
}

/** An attempt that is over, with its task as it is then. */
export interface EndedAttempt extends TracedWork {
  taskId: string;
  workerId: string;
  correlationId: string;
  job: string;
  step: string;
  agent: string;
  queue: string;
  priority: number;
  number: number;
  maxAttempts: number | null;
  status: string;
  counted: boolean;
  late: boolean;
  errorCode: string | null;
  errorKind: string | null;
  /** Of the task; OPEN: it is tried again. */
  taskState: string;
  /** The task failed for good by this attempt. */
  deadLettered: boolean;
  startedAt: Date;
  finishedAt: Date;
  /** As they are stored. */
  inputBytes: number;
  outputBytes: number | null;
  /** What was booked for it so far. Null: nothing. */
  usage: BookedUsage | null;
}

/** Sums of disjoint buckets; null: none was told. */
export interface BookedUsage {
  models: string[];
  providers: string[];
  requests: number;
  inputTokens: number | null;
  cacheReadTokens: number | null;
  cacheWriteTokens: number | null;
  outputTokens: number | null;
  reasoningTokens: number | null;
}

export interface RecordedResult {
  /** Null: of an attempt that has not ended. */
  attempt: EndedAttempt | null;
  attemptId: string;
  /** The sweeper reports what nobody else does. */
  by: 'REPORT' | 'SWEEPER';
  answer: string;
  /** Of whoever reported it. */
  traceContext: TraceContext | null;
  startedAt: number;
}

/** Milliseconds since 1970, with their fractions. */
export const preciseNow = (): number => performance.timeOrigin + performance.now();
