export type ErrorKind =
  | 'TRANSIENT'
  | 'PERMANENT'
  | 'INVALID_OUTPUT'
  | 'RATE_LIMITED'
  | 'PROVIDER_DOWN'
  | 'QUOTA_EXHAUSTED';
export type Backoff = 'FIXED' | 'LINEAR' | 'EXPONENTIAL';

export interface RetryOverride {
  code: string;
  retry: boolean;
  delaySeconds: number | null;
  countsAttempt: boolean;
}

export interface RetryPolicy {
  maxAttempts: number;
  backoff: Backoff;
  initialDelaySeconds: number;
  maxDelaySeconds: number;
  /** Share of the delay that is random around it, 0 to 1. */
  jitter: number;
  overrides: RetryOverride[];
}

/** The delays of a policy that gives none of its own. */
export const defaultDelays: Record<Backoff, Pick<RetryPolicy, 'initialDelaySeconds' | 'maxDelaySeconds'>> = {
  FIXED: { initialDelaySeconds: 10, maxDelaySeconds: 600 },
  LINEAR: { initialDelaySeconds: 5, maxDelaySeconds: 30 },
  EXPONENTIAL: { initialDelaySeconds: 10, maxDelaySeconds: 600 },
};

/** Part of every policy that has no rule of its own for the code. */
const shippedOverrides: readonly RetryOverride[] = [
  // Who holds the lock is done soon, however often it was in the way: the delay does not grow.
  { code: 'LOCK_CONFLICT', retry: true, delaySeconds: 15, countsAttempt: true },
];

/** A policy's own rules and the shipped ones beside them. */
export const withShippedOverrides = (own: readonly RetryOverride[]): RetryOverride[] => [
  ...own,
  ...shippedOverrides.filter(({ code }) => own.every((override) => override.code !== code)),
];

export const defaultRetryPolicy: RetryPolicy = {
  maxAttempts: 3,
  backoff: 'EXPONENTIAL',
  ...defaultDelays.EXPONENTIAL,
  jitter: 0.1,
  overrides: withShippedOverrides([]),
};

/** Ends in a row that spend no attempt; the next one counts, so that nothing is retried for ever. */
export const maxUncountedInRow = 20;
/** Leases lost in a row after which a task fails with LEASE_LOST. */
export const maxLostInRow = 5;

/** Kinds that tell of the provider, not of the task: they hold back the throttle and spend no attempt. */
export const isProviderKind = (kind: ErrorKind): boolean =>
  kind === 'RATE_LIMITED' || kind === 'PROVIDER_DOWN' || kind === 'QUOTA_EXHAUSTED';

/** What the earlier attempts of a task amount to. */
export interface AttemptHistory {
  counted: number;
  uncountedInRow: number;
  lostInRow: number;
}

export interface Failure {
  code: string;
  kind: ErrorKind;
  retryAfterSeconds: number | null;
}

export type RetryDecision =
  | { retry: true; counted: boolean; delaySeconds: number }
  | { retry: false; counted: boolean };

/** Decides whether a failed attempt is repeated and when. random is from 0 up to 1. */
export function decideRetry(
  policy: RetryPolicy,
  maxAttempts: number,
  failure: Failure,
  history: AttemptHistory,
  random: number,
): RetryDecision {
  const override = policy.overrides.find((o) => o.code === failure.code);
  const spares = override ? !override.countsAttempt : isProviderKind(failure.kind);
  const counted = !spares || history.uncountedInRow >= maxUncountedInRow;
  const used = history.counted + (counted ? 1 : 0);
  const mayRetry = override ? override.retry : failure.kind !== 'PERMANENT';
  if (!mayRetry || used >= maxAttempts) return { retry: false, counted };
  const base =
    override?.delaySeconds ?? failure.retryAfterSeconds ?? backoffSeconds(policy, Math.max(1, used));
  const exact = override?.delaySeconds == null && failure.retryAfterSeconds !== null;
  // A provider's own retry-after is a lower bound: jitter may only add to it.
  const spread = exact ? 1 + policy.jitter * random : 1 + policy.jitter * (2 * random - 1);
  return { retry: true, counted, delaySeconds: Math.max(0, base * spread) };
}

/** Delay after the n-th failure, before jitter. */
function backoffSeconds(policy: RetryPolicy, n: number): number {
  const { initialDelaySeconds: initial, maxDelaySeconds } = policy;
  switch (policy.backoff) {
    case 'FIXED':
      return Math.min(maxDelaySeconds, initial);
    case 'LINEAR':
      return Math.min(maxDelaySeconds, initial * n);
    case 'EXPONENTIAL':
      return Math.min(maxDelaySeconds, initial * 2 ** (n - 1));
  }
}
