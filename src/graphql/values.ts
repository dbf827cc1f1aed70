import type { ErrorKind } from '../domain/retry-policy.ts';
import type { TaskCounts } from '../read/counts.ts';
import type { Totals } from '../read/totals.ts';
import { builder } from './builder.ts';
import { ErrorKindEnum } from './enums.ts';
import { ifPayload } from './scopes.ts';

/** Labels as a list, by key. */
export const toLabels = (labels: Record<string, string>): { key: string; value: string }[] =>
  Object.entries(labels)
    .map(([key, value]) => ({ key, value }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));

export const LabelRef = builder.objectRef<{ key: string; value: string }>('Label').implement({
  description: 'A word that a client put on an object, to find it by.',
  fields: (t) => ({
    key: t.exposeString('key', { description: 'At most 63 bytes.' }),
    value: t.exposeString('value', { description: 'At most 200 bytes.' }),
  }),
});

export interface ExecutionErrorValue {
  code: string;
  kind: ErrorKind;
  retryable: boolean;
  message: string | null;
}

/** The error of a row, if it has one. Its kind says whether to retry. */
export const toExecutionError = (row: {
  errorCode: string | null;
  errorKind: ErrorKind | null;
  errorMessage: string | null;
}): ExecutionErrorValue | null => {
  if (row.errorCode === null) return null;
  const kind = row.errorKind ?? 'TRANSIENT';
  return { code: row.errorCode, kind, retryable: kind !== 'PERMANENT', message: row.errorMessage };
};

export const ExecutionErrorRef = builder.objectRef<ExecutionErrorValue>('ExecutionError').implement({
  description: 'Why an attempt or a task failed.',
  fields: (t) => ({
    code: t.exposeString('code', {
      description: "The agent's own word, or one of the server such as LEASE_LOST.",
    }),
    kind: t.field({
      type: ErrorKindEnum,
      description: 'What it says about a next attempt.',
      resolve: ({ kind }) => kind,
    }),
    retryable: t.exposeBoolean('retryable', { description: 'Whether a next attempt may succeed.' }),
    message: t.string({
      nullable: true,
      description: 'In words, at most 8,192 bytes. Needs PAYLOAD_READ, else null.',
      resolve: ({ message }, _, context) => ifPayload(context, () => message),
    }),
  }),
});

/** Null when nothing was booked: then nothing is known, which is not zero. */
export const toUsage = (totals: Totals | null): Totals | null =>
  totals && totals.entries > 0 ? totals : null;

export const UsageRef = builder.objectRef<Totals>('Usage').implement({
  description: 'Tokens, in counts that do not overlap. One that no answer told is null, never 0.',
  fields: (t) => {
    const tokens = (name: keyof Totals & `${string}Tokens`, description: string) =>
      t.field({ type: 'SafeInt', nullable: true, description, resolve: (totals) => totals[name] });
    return {
      inputTokens: tokens('inputTokens', 'Input that no cache had.'),
      cacheReadTokens: tokens('cacheReadTokens', 'Input that a cache had.'),
      cacheWriteTokens: tokens('cacheWriteTokens', 'Input that was written to a cache, for however long.'),
      outputTokens: tokens('outputTokens', 'Output without reasoning.'),
      reasoningTokens: tokens('reasoningTokens', 'Reasoning.'),
      totalTokens: tokens('totalTokens', 'The sum of the counts that are known.'),
    };
  },
});

export const CostRef = builder.objectRef<Totals>('Cost').implement({
  description: 'What was spent, exactly. Attempts of every outcome count.',
  fields: (t) => ({
    llm: t.field({ type: 'Decimal', description: 'For models.', resolve: ({ llmCost }) => llmCost }),
    compute: t.field({
      type: 'Decimal',
      description: "For the time of attempts that ended, at their agents' computeCostPerHour.",
      resolve: ({ computeCost }) => computeCost,
    }),
    total: t.field({ type: 'Decimal', description: 'Both together.', resolve: ({ totalCost }) => totalCost }),
    currency: t.string({ description: 'USD.', resolve: () => 'USD' }),
    unpricedAttempts: t.exposeInt('unpricedAttempts', {
      description:
        'Attempts that told of usage without its cost. What they did not tell is missing from llm, not counted as 0.',
    }),
  }),
});

export const TaskCountsRef = builder.objectRef<TaskCounts>('TaskCounts').implement({
  description: 'Tasks by status.',
  fields: (t) => ({
    blocked: t.exposeInt('blocked', { description: 'Tasks that are BLOCKED.' }),
    enqueued: t.exposeInt('enqueued', { description: 'Tasks that are ENQUEUED.' }),
    processing: t.exposeInt('processing', { description: 'Tasks that are PROCESSING.' }),
    completed: t.exposeInt('completed', { description: 'Tasks that are COMPLETED.' }),
    failed: t.exposeInt('failed', { description: 'Tasks that are FAILED.' }),
    cancelled: t.exposeInt('cancelled', { description: 'Tasks that are CANCELLED.' }),
    estimated: t.boolean({
      description:
        'Whether counts past 10,000 may be up to 2 % off. They are counted one by one now, so false.',
      resolve: () => false,
    }),
  }),
});
