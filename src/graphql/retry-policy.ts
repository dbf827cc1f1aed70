import type { RetryOverride, RetryPolicy } from '../domain/retry-policy.ts';
import { builder } from './builder.ts';
import { BackoffEnum } from './enums.ts';

const RetryOverrideRef = builder.objectRef<RetryOverride>('RetryOverride').implement({
  description: 'The rule for one error code, in place of the policy.',
  fields: (t) => ({
    code: t.exposeString('code', { description: 'The error code.' }),
    retry: t.exposeBoolean('retry', { description: 'Whether such a failure is repeated.' }),
    delaySeconds: t.exposeFloat('delaySeconds', {
      nullable: true,
      description: "Seconds before; null is the policy's own delay.",
    }),
    countsAttempt: t.exposeBoolean('countsAttempt', {
      description: 'Whether such a failure spends an attempt.',
    }),
  }),
});

export const RetryPolicyRef = builder.objectRef<RetryPolicy>('RetryPolicy').implement({
  description: 'How failed attempts are repeated.',
  fields: (t) => ({
    maxAttempts: t.exposeInt('maxAttempts', { description: 'Attempts that count before the task fails.' }),
    backoff: t.field({
      type: BackoffEnum,
      description: 'How the delay grows.',
      resolve: ({ backoff }) => backoff,
    }),
    initialDelaySeconds: t.exposeFloat('initialDelaySeconds', {
      description: 'Seconds before the second attempt.',
    }),
    maxDelaySeconds: t.exposeFloat('maxDelaySeconds', {
      description: 'No delay grows longer before its jitter, in seconds.',
    }),
    jitter: t.exposeFloat('jitter', {
      description:
        'Share of the delay that is random around it, 0 to 1: 0.1 makes 10 s anything from 9 to 11 s. A retryAfterSeconds is only made longer.',
    }),
    overrides: t.field({
      type: [RetryOverrideRef],
      description:
        'Rules for single error codes, with the shipped one: LOCK_CONFLICT is repeated after 15 s, unless the policy has a rule of its own for it.',
      resolve: ({ overrides }) => overrides,
    }),
  }),
});

const RetryOverrideInput = builder.inputType('RetryOverrideInput', {
  description: 'The rule for one error code, in place of the policy.',
  fields: (t) => ({
    code: t.string({ required: true, description: 'The error code, in 1 to 200 bytes.' }),
    retry: t.boolean({ required: true, description: 'Whether such a failure is repeated.' }),
    delaySeconds: t.float({
      description: "Seconds before, 0 to 2,592,000; absent is the policy's own delay.",
    }),
    countsAttempt: t.boolean({ description: 'Whether such a failure spends an attempt; default true.' }),
  }),
});

export const RetryPolicyInput = builder.inputType('RetryPolicyInput', {
  description: 'How failed attempts are repeated; what is absent takes its default.',
  fields: (t) => ({
    maxAttempts: t.int({ description: 'Attempts that count before the task fails, 1 to 1000; default 3.' }),
    backoff: t.field({ type: BackoffEnum, description: 'How the delay grows; default EXPONENTIAL.' }),
    initialDelaySeconds: t.float({
      description:
        'Seconds before the second attempt, and the step of LINEAR; 0 to 2,592,000; default 10, with LINEAR 5.',
    }),
    maxDelaySeconds: t.float({
      description:
        'No delay grows longer before its jitter; seconds, 0 to 2,592,000; default 600, with LINEAR 30, and no less than initialDelaySeconds.',
    }),
    jitter: t.float({ description: 'Share of the delay that is random around it, 0 to 1; default 0.1.' }),
    overrides: t.field({
      type: [RetryOverrideInput],
      description:
        'Rules for single error codes, at most 100, each code once; default none. LOCK_CONFLICT has a shipped one (15 s, counts) that a rule of your own replaces.',
    }),
  }),
});
