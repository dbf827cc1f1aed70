import type { ThrottleRow } from '../read/throttles.ts';
import { builder } from './builder.ts';
import { pageArgs, ThrottleConnection } from './connections.ts';
import { ThrottleModeEnum } from './enums.ts';
import { AgentRef, idOf, Node, ThrottleRef } from './refs.ts';
import { change, ifVersion, saveResult } from './save.ts';

type ThrottleMode = 'UNLIMITED' | 'CONCURRENCY' | 'TOKEN_BUDGET' | 'REQUEST_RATE' | 'COMBINED';

function throttleMode(throttle: ThrottleRow): ThrottleMode {
  const { maxConcurrentTasks, maxTokensPerMinute, maxRequestsPerMinute, maxRequestsPerSecond } = throttle;
  const kinds: ThrottleMode[] = [];
  if (maxConcurrentTasks !== null) kinds.push('CONCURRENCY');
  if (maxTokensPerMinute !== null) kinds.push('TOKEN_BUDGET');
  if (maxRequestsPerMinute !== null || maxRequestsPerSecond !== null) kinds.push('REQUEST_RATE');
  return kinds.length > 1 ? 'COMBINED' : (kinds[0] ?? 'UNLIMITED');
}

ThrottleRef.implement({
  description:
    'Limits of one shared resource (a model endpoint, an API key), kept exactly in the claim, over all replicas and agents that use it.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('thr')),
    name: t.exposeString('name', { description: 'Unique; never changes.' }),
    maxConcurrentTasks: t.exposeInt('maxConcurrentTasks', {
      nullable: true,
      description: 'Tasks that its agents may run at once, together; null is no limit.',
    }),
    maxTokensPerMinute: t.exposeInt('maxTokensPerMinute', {
      nullable: true,
      description:
        'Tokens that its agents may use in 60 seconds, together: uncached input, cache writes, output and reasoning. Null is no limit.',
    }),
    maxRequestsPerMinute: t.exposeInt('maxRequestsPerMinute', {
      nullable: true,
      description: 'Requests that its agents may make in 60 seconds, together; null is no limit.',
    }),
    maxRequestsPerSecond: t.exposeInt('maxRequestsPerSecond', {
      nullable: true,
      description: 'Requests that its agents may make in one second, together; null is no limit.',
    }),
    mode: t.field({
      type: ThrottleModeEnum,
      description: 'Derived from the limits that are set.',
      resolve: throttleMode,
    }),
    processingTasks: t.int({
      nullable: true,
      description: 'Tasks that its agents run now.',
      resolve: async ({ id }, _, { loaders }) => (await loaders.throttleUse(id))?.tasks,
    }),
    tokensInWindow: t.field({
      type: 'SafeInt',
      nullable: true,
      description:
        'Tokens settled in the last 60 seconds, and those that running attempts reserve for the next 60.',
      resolve: async ({ id }, _, { loaders }) => (await loaders.throttleUse(id))?.tokens,
    }),
    requestsInWindow: t.int({
      nullable: true,
      description:
        'Requests of the last 60 seconds: one for each claim, as corrected by reported usage. Counted while a limit of requests is set.',
      resolve: async ({ id }, _, { loaders }) => (await loaders.throttleUse(id))?.requests,
    }),
    notBefore: t.expose('notBefore', {
      type: 'DateTime',
      nullable: true,
      description:
        'Nothing is claimed before; set by RATE_LIMITED, PROVIDER_DOWN and QUOTA_EXHAUSTED results.',
    }),
    agents: t.field({
      type: [AgentRef],
      description: 'The agents that share it, by name.',
      resolve: async (throttle, _, { loaders }) => (await loaders.throttleAgents(throttle.id)) ?? [],
    }),
    version: t.exposeInt('version', { description: 'Raised by every change.' }),
  }),
});

const limitRange = '0 to 2,147,483,647, absent is no limit';

const SaveThrottleInput = builder.inputType('SaveThrottleInput', {
  description: 'A throttle as a whole: what is absent takes its default.',
  fields: (t) => ({
    name: t.string({ required: true, description: '1 to 200 bytes.' }),
    maxConcurrentTasks: t.int({
      description: `Tasks that its agents may run at once, together; ${limitRange}.`,
    }),
    maxTokensPerMinute: t.int({
      description: `Tokens that its agents may use in 60 seconds, together; ${limitRange}. A task is expected to use its estimatedTokens, else the 90th percentile of what the last 200 attempts of its agent used, else 4,000.`,
    }),
    maxRequestsPerMinute: t.int({
      description: `Requests that its agents may make in 60 seconds, together; ${limitRange}.`,
    }),
    maxRequestsPerSecond: t.int({
      description: `Requests that its agents may make in one second, together; ${limitRange}.`,
    }),
    ifVersion: t.int({ description: ifVersion('throttle') }),
  }),
});

const SaveThrottleResult = saveResult('throttle', ThrottleRef, (loaders) => loaders.throttle);

builder.queryField('throttles', (t) =>
  t.field({
    type: ThrottleConnection,
    nullable: true,
    description: 'All throttles, oldest first. Needs READ.',
    args: pageArgs,
    resolve: (_, page, context) => context.services.read.throttles.list(page),
  }),
);

builder.mutationField('saveThrottle', (t) =>
  t.field({
    type: SaveThrottleResult,
    nullable: true,
    description:
      'Creates or replaces a throttle, by its name. A lower limit stops nothing that runs. Needs CONFIGURE.',
    args: { input: t.arg({ type: SaveThrottleInput, required: true, description: 'The throttle.' }) },
    resolve: (_, { input }, context) =>
      change(context, 'CONFIGURE', (actor) => context.services.configuration.saveThrottle(input, actor)),
  }),
);
