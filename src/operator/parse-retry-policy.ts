import { limits } from '../domain/limits.ts';
import { defaultRetryPolicy, type RetryOverride, type RetryPolicy } from '../domain/retry-policy.ts';
import { parseInteger, parseName } from '../domain/text.ts';
import { parseNumber, refuseDuplicates, refuseTooMany } from './parse-fields.ts';
import type { RetryOverrideInput, RetryPolicyInput } from './types.ts';

/** 30 days. */
const maxDelaySeconds = 2_592_000;
const maxOverrides = 100;

/** A whole retry policy; absent fields take the default's. */
export function parseRetryPolicy(input: RetryPolicyInput | null | undefined, field: string): RetryPolicy {
  const given = input ?? {};
  const fallback = defaultRetryPolicy;
  return {
    maxAttempts: parseInteger(
      given.maxAttempts ?? fallback.maxAttempts,
      `${field}.maxAttempts`,
      1,
      limits.maxAttempts,
    ),
    backoff: given.backoff ?? fallback.backoff,
    initialDelaySeconds: parseDelay(
      given.initialDelaySeconds ?? fallback.initialDelaySeconds,
      `${field}.initialDelaySeconds`,
    ),
    maxDelaySeconds: parseDelay(
      given.maxDelaySeconds ?? fallback.maxDelaySeconds,
      `${field}.maxDelaySeconds`,
    ),
    jitter: parseNumber(given.jitter ?? fallback.jitter, `${field}.jitter`, 0, 1),
    overrides: parseOverrides(given.overrides ?? fallback.overrides, `${field}.overrides`),
  };
}

const parseDelay = (value: number, field: string): number => parseNumber(value, field, 0, maxDelaySeconds);

function parseOverrides(inputs: readonly RetryOverrideInput[], field: string): RetryOverride[] {
  refuseTooMany(inputs, field, maxOverrides);
  const overrides = inputs.map((input, i) => ({
    code: parseName(input.code, `${field}[${i}].code`),
    retry: input.retry,
    delaySeconds:
      input.delaySeconds == null ? null : parseDelay(input.delaySeconds, `${field}[${i}].delaySeconds`),
    countsAttempt: input.countsAttempt ?? true,
  }));
  refuseDuplicates(
    overrides.map(({ code }) => code),
    field,
  );
  return overrides;
}
