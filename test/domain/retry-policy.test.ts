import { describe, expect, test } from 'vitest';
import {
  decideRetry,
  defaultRetryPolicy,
  type ErrorKind,
  type Failure,
} from '../../src/domain/retry-policy.ts';
import { parseRetryPolicy } from '../../src/operator/parse-retry-policy.ts';
import type { RetryPolicyInput } from '../../src/operator/types.ts';

const fresh = { counted: 0, uncountedInRow: 0, lostInRow: 0 };
const mean = 0.5;

/** The delays that a policy gives one failure after the other, null once it gives up. */
function delays(
  input: RetryPolicyInput,
  failure: Partial<Failure> = {},
  { times = 8, random = mean } = {},
): (number | null)[] {
  const policy = parseRetryPolicy({ maxAttempts: 100, ...input }, 'retryPolicy');
  const failed: Failure = { code: 'BOOM', kind: 'TRANSIENT', retryAfterSeconds: null, ...failure };
  return Array.from({ length: times }, (_, counted) => {
    const decision = decideRetry(policy, policy.maxAttempts, failed, { ...fresh, counted }, random);
    return decision.retry ? decision.delaySeconds : null;
  });
}

describe('the delays of a policy', () => {
  test.each<[string, RetryPolicyInput, (number | null)[]]>([
    ['nothing given', { maxAttempts: 3 }, [10, 20, null, null, null, null, null, null]],
    ['EXPONENTIAL', {}, [10, 20, 40, 80, 160, 320, 600, 600]],
    ['EXPONENTIAL from 1 s', { initialDelaySeconds: 1, maxDelaySeconds: 5 }, [1, 2, 4, 5, 5, 5, 5, 5]],
    ['LINEAR', { backoff: 'LINEAR' }, [5, 10, 15, 20, 25, 30, 30, 30]],
    [
      'LINEAR by 40 s without a maximum',
      { backoff: 'LINEAR', initialDelaySeconds: 40 },
      [40, 40, 40, 40, 40, 40, 40, 40],
    ],
    [
      'LINEAR by 2 s',
      { backoff: 'LINEAR', initialDelaySeconds: 2, maxDelaySeconds: 7 },
      [2, 4, 6, 7, 7, 7, 7, 7],
    ],
    ['FIXED', { backoff: 'FIXED' }, [10, 10, 10, 10, 10, 10, 10, 10]],
    ['FIXED at 3 s', { backoff: 'FIXED', initialDelaySeconds: 3 }, [3, 3, 3, 3, 3, 3, 3, 3]],
  ])('%s', (_, input, expected) => {
    expect(delays(input)).toEqual(expected);
  });

  test('jitter is spread around them to both sides, as wide as the policy says', () => {
    const at = (random: number, jitter: number) =>
      delays({ backoff: 'FIXED', jitter }, {}, { times: 1, random })[0];
    expect([at(0, 0.1), at(0.5, 0.1), at(1, 0.1)]).toEqual([9, 10, 11]);
    expect([at(0, 1), at(0.5, 1), at(1, 1)]).toEqual([0, 10, 20]);
    expect([at(0, 0), at(1, 0)]).toEqual([10, 10]);
  });

  test('a retryAfterSeconds is waited for, and jitter only adds to it', () => {
    const after = { retryAfterSeconds: 100 };
    expect(delays({}, after, { times: 1, random: 0 })).toEqual([100]);
    expect(delays({ jitter: 0.2 }, after, { times: 1, random: 1 })).toEqual([120]);
  });
});

describe('a rule for an error code', () => {
  const conflict = { code: 'LOCK_CONFLICT', kind: 'TRANSIENT' } as const;

  test('is there for LOCK_CONFLICT in every policy: 15 s however often, spending attempts', () => {
    expect(delays({}, conflict, { times: 3 })).toEqual([15, 15, 15]);
    expect(delays({ backoff: 'LINEAR', overrides: [] }, conflict, { times: 3 })).toEqual([15, 15, 15]);
    expect(delays({ maxAttempts: 2 }, conflict, { times: 2 })).toEqual([15, null]);
    expect(defaultRetryPolicy.overrides).toEqual([
      { code: 'LOCK_CONFLICT', retry: true, delaySeconds: 15, countsAttempt: true },
    ]);
  });

  test('of its own replaces the shipped one and stands before the others', () => {
    const { overrides } = parseRetryPolicy(
      { overrides: [{ code: 'LOCK_CONFLICT', retry: true, delaySeconds: 1, countsAttempt: false }] },
      'retryPolicy',
    );
    expect(overrides).toEqual([
      { code: 'LOCK_CONFLICT', retry: true, delaySeconds: 1, countsAttempt: false },
    ]);
    expect(
      parseRetryPolicy({ overrides: [{ code: 'A', retry: false }] }, 'retryPolicy').overrides.map(
        ({ code }) => code,
      ),
    ).toEqual(['A', 'LOCK_CONFLICT']);
  });

  test.each<[string, ErrorKind, boolean, boolean, (number | null)[]]>([
    ['repeats what would be given up', 'PERMANENT', true, true, [10, 20]],
    ['gives up what would be repeated', 'TRANSIENT', false, true, [null, null]],
    ["counts a provider's failure", 'RATE_LIMITED', true, true, [10, 20]],
  ])('%s', (_, kind, retry, countsAttempt, expected) => {
    expect(
      delays({ overrides: [{ code: 'X', retry, countsAttempt }] }, { code: 'X', kind }, { times: 2 }),
    ).toEqual(expected);
  });

  test('that spares attempts spares 20 in a row, then each counts', () => {
    const policy = parseRetryPolicy(
      { maxAttempts: 1, overrides: [{ code: 'X', retry: true, countsAttempt: false }] },
      'retryPolicy',
    );
    const failed: Failure = { code: 'X', kind: 'TRANSIENT', retryAfterSeconds: null };
    const after = (uncountedInRow: number) =>
      decideRetry(policy, 1, failed, { ...fresh, uncountedInRow }, mean);
    expect(after(19)).toMatchObject({ retry: true, counted: false });
    expect(after(20)).toMatchObject({ retry: false, counted: true });
  });
});
