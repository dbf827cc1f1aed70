import { type ExecutionError, leaseLost, timedOut } from '../domain/execution-error.ts';
import {
  type AttemptHistory,
  decideRetry,
  maxLostInRow,
  maxUncountedInRow,
  type RetryPolicy,
} from '../domain/retry-policy.ts';
import type { AttemptStatus, TaskState } from '../domain/status.ts';
import type { ReportedEnd } from './parse-result.ts';

/** How an attempt comes to an end: its worker says so, or the sweeper finds it. */
export type Ending = { by: 'REPORT'; report: ReportedEnd & { digest: string } } | { by: 'SWEEPER' };

/** What is known of an attempt and its task when a result arrives, read under the run's lock. */
export interface AttemptState {
  /** RUNNING: it holds the lease of its task. */
  attempt: AttemptStatus;
  /** Of what this attempt reported before. */
  reportedDigest: Buffer | null;
  task: TaskState;
  cancelRequested: boolean;
  /** By the database's clock, now. */
  leaseExpired: boolean;
  timedOut: boolean;
  retryPolicy: RetryPolicy;
  maxAttempts: number;
  history: AttemptHistory;
}

/** What becomes of the task. */
export type TaskOutcome =
  | { to: 'COMPLETED' }
  | { to: 'CANCELLED' }
  | { to: 'FAILED'; error: ExecutionError }
  | { to: 'ENQUEUED'; delaySeconds: number; error: ExecutionError | null };

export type Decision =
  /** The attempt ends with its lease. */
  | {
      answer: 'APPLIED';
      late: false;
      attempt: Exclude<AttemptStatus, 'RUNNING'>;
      counted: boolean;
      error: ExecutionError | null;
      task: TaskOutcome;
    }
  /** A lost attempt did the work after all: its task completes, a newer attempt is cancelled. */
  | { answer: 'APPLIED'; late: true }
  | { answer: 'SUPERSEDED' | 'REPLAYED' | 'CONFLICT' }
  /** The sweeper found nothing to do: the lease was extended or ended meanwhile. */
  | { answer: 'NOTHING' };

/** The table of results, in code. random is from 0 up to 1. */
export function decideResult(
  ending: Ending,
  attempt: Omit<AttemptState, 'history'>,
  history: AttemptHistory,
  random: number,
): Decision {
  if (ending.by === 'SWEEPER') return decideSweep({ ...attempt, history }, random);
  const { report } = ending;
  // The digest comes before the state: a repeated result is answered the same for ever.
  if (attempt.reportedDigest) {
    return { answer: attempt.reportedDigest.toString('hex') === report.digest ? 'REPLAYED' : 'CONFLICT' };
  }
  if (attempt.attempt === 'RUNNING') {
    // The state is put together only where the answer depends on it: most reports say that the work is done, and that
    // wins over everything, even a cancel.
    return report.status === 'COMPLETED'
      ? completed
      : decideUnfinished(report, { ...attempt, history }, random);
  }
  const mayComplete =
    attempt.task === 'OPEN' && (attempt.attempt === 'LOST' || attempt.attempt === 'TIMED_OUT');
  if (mayComplete && report.status === 'COMPLETED') return { answer: 'APPLIED', late: true };
  return { answer: 'SUPERSEDED' };
}

const completed: Decision = {
  answer: 'APPLIED',
  late: false,
  attempt: 'COMPLETED',
  counted: true,
  error: null,
  task: { to: 'COMPLETED' },
};

type Unfinished = Exclude<ReportedEnd, { status: 'COMPLETED' }>;

function decideUnfinished(report: Unfinished, state: AttemptState, random: number): Decision {
  const end = { answer: 'APPLIED', late: false, error: null } as const;
  const cancelled = { to: 'CANCELLED' } as const;
  switch (report.status) {
    case 'CANCELLED':
      return { ...end, attempt: 'CANCELLED', counted: false, task: cancelled };
    case 'RELEASED': {
      const counted = state.history.uncountedInRow >= maxUncountedInRow;
      const released = { ...end, attempt: 'RELEASED', counted } as const;
      if (state.cancelRequested) return { ...released, task: cancelled };
      if (counted && state.history.counted + 1 >= state.maxAttempts) {
        const error = {
          code: 'RELEASED_TOO_OFTEN',
          kind: 'TRANSIENT',
          message: `Handed back more than ${maxUncountedInRow} times in a row.`,
        } as const;
        return { ...released, error, task: { to: 'FAILED', error } };
      }
      return { ...released, task: { to: 'ENQUEUED', delaySeconds: 0, error: null } };
    }
    case 'FAILED': {
      const { code, kind, message, retryAfterSeconds } = report.error;
      const failed = decideFailure({ code, kind, message }, retryAfterSeconds, state, random);
      return { ...end, attempt: 'FAILED', ...failed };
    }
  }
}

function decideFailure(
  error: ExecutionError,
  retryAfterSeconds: number | null,
  state: AttemptState,
  random: number,
): { counted: boolean; error: ExecutionError; task: TaskOutcome } {
  const retry = decideRetry(
    state.retryPolicy,
    state.maxAttempts,
    { ...error, retryAfterSeconds },
    state.history,
    random,
  );
  const { counted } = retry;
  if (state.cancelRequested) return { counted, error, task: { to: 'CANCELLED' } };
  if (!retry.retry) return { counted, error, task: { to: 'FAILED', error } };
  return { counted, error, task: { to: 'ENQUEUED', delaySeconds: retry.delaySeconds, error } };
}

function decideSweep(state: AttemptState, random: number): Decision {
  if (state.attempt !== 'RUNNING') return { answer: 'NOTHING' };
  const end = { answer: 'APPLIED', late: false } as const;
  if (state.timedOut)
    return { ...end, attempt: 'TIMED_OUT', ...decideFailure(timedOut, null, state, random) };
  if (!state.leaseExpired) return { answer: 'NOTHING' };
  const lost = { ...end, attempt: 'LOST', counted: false } as const;
  const times = state.history.lostInRow + 1;
  const error = leaseLost(times);
  if (state.cancelRequested) return { ...lost, error, task: { to: 'CANCELLED' } };
  if (times >= maxLostInRow) return { ...lost, error, task: { to: 'FAILED', error } };
  return { ...lost, error, task: { to: 'ENQUEUED', delaySeconds: 0, error } };
}
