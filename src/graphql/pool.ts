import { builder } from './builder.ts';
import { idOf, Node, PoolRef, QueueRef } from './refs.ts';
import { change, ifVersion, saveResult } from './save.ts';

PoolRef.implement({
  description: 'Slots on each process that serves it.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('pool')),
    name: t.exposeString('name', { description: 'Unique; never changes.' }),
    slotsPerReplica: t.exposeInt('slotsPerReplica', {
      description:
        'Tasks at once on each server replica, and on each pull worker that claims for the pool; 0 to 1,000.',
    }),
    elastic: t.exposeBoolean('elastic', {
      description:
        "Whether it also runs tasks of other pools' queues that have a sharedWeight, by these weights.",
    }),
    queues: t.field({
      type: [QueueRef],
      description: 'Its queues, by name.',
      resolve: async (pool, _, { loaders }) => (await loaders.poolQueues(pool.id)) ?? [],
    }),
    replicas: t.int({
      nullable: true,
      description: 'Live server replicas and pull workers that claim for it.',
      resolve: async (pool, _, { loaders }) => (await loaders.poolUse(pool.id))?.replicas,
    }),
    slots: t.int({
      nullable: true,
      description:
        'Slots of all of them together: of each slotsPerReplica, or what a pull worker can run in all where that is less.',
      resolve: async (pool, _, { loaders }) => (await loaders.poolUse(pool.id))?.slots,
    }),
    busySlots: t.int({
      nullable: true,
      description:
        'Slots of all of them that running tasks take now; more than slots only after these were lowered.',
      resolve: async (pool, _, { loaders }) => (await loaders.poolUse(pool.id))?.busySlots,
    }),
    version: t.exposeInt('version', { description: 'Raised by every change.' }),
  }),
});

const SavePoolInput = builder.inputType('SavePoolInput', {
  description: 'A pool as a whole: what is absent takes its default.',
  fields: (t) => ({
    name: t.string({ required: true, description: '1 to 200 bytes.' }),
    slotsPerReplica: t.int({
      required: true,
      description: 'Tasks at once on each server replica and each of its pull workers, 0 to 1,000.',
    }),
    elastic: t.boolean({
      description:
        "Whether it also runs tasks of other pools' queues that have a sharedWeight; default false.",
    }),
    ifVersion: t.int({ description: ifVersion('pool') }),
  }),
});

const SavePoolResult = saveResult('pool', PoolRef, (loaders) => loaders.pool);

builder.queryField('pools', (t) =>
  t.field({
    type: [PoolRef],
    nullable: true,
    description: 'All pools, by name. Needs READ.',
    resolve: (_, __, context) => context.services.read.pools.all(),
  }),
);

builder.mutationField('savePool', (t) =>
  t.field({
    type: SavePoolResult,
    nullable: true,
    description: 'Creates or replaces a pool, by its name. Needs CONFIGURE.',
    args: { input: t.arg({ type: SavePoolInput, required: true, description: 'The pool.' }) },
    resolve: (_, { input }, context) =>
      change(context, 'CONFIGURE', (actor) => context.services.configuration.savePool(input, actor)),
  }),
);
