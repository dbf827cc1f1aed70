import { builder } from './builder.ts';
import { pageArgs, ThrottleConnection } from './connections.ts';
import { ThrottleModeEnum } from './enums.ts';
import { AgentRef, idOf, Node, ThrottleRef } from './refs.ts';
import { change, saveResult } from './save.ts';
import { need } from './scopes.ts';

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
    mode: t.field({
      type: ThrottleModeEnum,
      description: 'Derived from the limits that are set.',
      resolve: ({ maxConcurrentTasks }) => (maxConcurrentTasks === null ? 'UNLIMITED' : 'CONCURRENCY'),
    }),
    processingTasks: t.int({
      nullable: true,
      description: 'Tasks that its agents run now.',
      resolve: async (throttle, _, { loaders }) =>
        (await loaders.throttleProcessing(throttle.id))?.processing,
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

const SaveThrottleInput = builder.inputType('SaveThrottleInput', {
  description: 'A throttle as a whole: what is absent takes its default.',
  fields: (t) => ({
    name: t.string({ required: true, description: '1 to 200 bytes.' }),
    maxConcurrentTasks: t.int({ description: 'From 0; absent is no limit.' }),
    ifVersion: t.int({ description: 'Refuse it unless the throttle has this version.' }),
  }),
});

const SaveThrottleResult = saveResult('throttle', ThrottleRef, (loaders) => loaders.throttle);

builder.queryField('throttles', (t) =>
  t.field({
    type: ThrottleConnection,
    nullable: true,
    description: 'All throttles, oldest first. Needs READ.',
    args: pageArgs,
    resolve: (_, page, context) => {
      need(context, 'READ');
      return context.services.read.throttles.list(page);
    },
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
