import { builder } from './builder.ts';

export const ModelUsageInput = builder.inputType('ModelUsageInput', {
  description:
    'What one answer of a model used. Counts do not overlap; one that is unknown is absent, not 0.',
  fields: (t) => ({
    model: t.string({ description: "The model that answered; absent is the agent's default model." }),
    provider: t.string({ description: 'Who runs it.' }),
    inputTokens: t.field({ type: 'SafeInt', description: 'Input that no cache had.' }),
    cacheReadTokens: t.field({ type: 'SafeInt', description: 'Input that a cache had.' }),
    cacheWriteTokens: t.field({
      type: 'SafeInt',
      description: 'Input that was written to a cache for minutes.',
    }),
    cacheWrite1hTokens: t.field({
      type: 'SafeInt',
      description: 'Input that was written to a cache for an hour.',
    }),
    outputTokens: t.field({ type: 'SafeInt', description: 'Output without reasoning.' }),
    reasoningTokens: t.field({ type: 'SafeInt', description: 'Reasoning.' }),
    requests: t.int({ description: 'Requests that it took; default 1.' }),
    cost: t.field({
      type: 'Decimal',
      description:
        'In USD; taken as it is. There is no list of prices: without it the attempt counts in unpricedAttempts.',
    }),
    responseId: t.string({
      description:
        "The provider's id of the answer: it counts once, however often it is told. Needed in heartbeats.",
    }),
    at: t.field({ type: 'DateTime', description: 'When the call was made; absent is now.' }),
    raw: t.field({ type: 'JSON', description: "The provider's own usage object, kept as it came." }),
  }),
});
