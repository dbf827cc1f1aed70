import { limits } from '../domain/limits.ts';
import { refuseDuplicates, refuseTooMany } from '../domain/names.ts';
import { collected } from '../domain/problems.ts';
import {
  defaultDelays,
  defaultRetryPolicy,
  type RetryOverride,
  type RetryPolicy,
  withShippedOverrides,
} from '../domain/retry-policy.ts';
import { parseInteger, parseNumber } from '../domain/scalars.ts';
import { parseName } from '../domain/text.ts';
import { parseEach } from './parse-fields.ts';
import type { RetryOverrideInput, RetryPolicyInput } from './types.ts';

/** A whole retry policy; absent fields take the default's. */
export function parseRetryPolicy(input: RetryPolicyInput | null | undefined, field: string): RetryPolicy {
  const given = input ?? {};
  const fallback = defaultRetryPolicy;
  const backoff = given.backoff ?? fallback.backoff;
  const delays = defaultDelays[backoff];
  const initialDelaySeconds = given.initialDelaySeconds ?? delays.initialDelaySeconds;
  // A default must not cut the delay that was asked for.
  const longest = Math.max(delays.maxDelaySeconds, Math.min(initialDelaySeconds, limits.retryDelaySeconds));
  return parseEach<RetryPolicy>({
    maxAttempts: () =>
      parseInteger(given.maxAttempts ?? fallback.maxAttempts, `${field}.maxAttempts`, 1, limits.maxAttempts),
    backoff: () => backoff,
    initialDelaySeconds: () => parseDelay(initialDelaySeconds, `${field}.initialDelaySeconds`),
    maxDelaySeconds: () => parseDelay(given.maxDelaySeconds ?? longest, `${field}.maxDelaySeconds`),
    jitter: () => parseNumber(given.jitter ?? fallback.jitter, `${field}.jitter`, 0, 1),
    overrides: () => withShippedOverrides(parseOverrides(given.overrides ?? [], `${field}.overrides`)),
  });
}

const parseDelay = (value: number, field: string): number =>
  parseNumber(value, field, 0, limits.retryDelaySeconds);

const parseOverride = (input: RetryOverrideInput, at: string): RetryOverride =>
  parseEach<RetryOverride>({
    code: () => parseName(input.code, `${at}.code`),
    retry: () => input.retry,
    delaySeconds: () =>
      input.delaySeconds == null ? null : parseDelay(input.delaySeconds, `${at}.delaySeconds`),
    countsAttempt: () => input.countsAttempt ?? true,
  });

function parseOverrides(inputs: readonly RetryOverrideInput[], field: string): RetryOverride[] {
  refuseTooMany(inputs, field, limits.retryOverrides);
  const overrides = collected(inputs.map((input, i) => () => parseOverride(input, `${field}[${i}]`)));
  refuseDuplicates(
    overrides.map(({ code }) => code),
    field,
  );
  return overrides;
}
