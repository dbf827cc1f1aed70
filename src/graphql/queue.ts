import type { QueueStats } from '../read/queues.ts';
import { builder } from './builder.ts';
import { idOf, Node, PoolRef, QueueRef } from './refs.ts';
import { change, ifVersion, saveResult } from './save.ts';

const QueueStatsRef = builder.objectRef<QueueStats>('QueueStats').implement({
  description: "Tasks of the queue's agents, counted now.",
  fields: (t) => ({
    pending: t.exposeInt('pending', {
      description: 'Could run now, or come after another one of their serial key.',
    }),
    scheduled: t.exposeInt('scheduled', { description: 'Were asked for at a later time.' }),
    retrying: t.exposeInt('retrying', { description: 'Are repeated later after a failed attempt.' }),
    blocked: t.exposeInt('blocked', { description: 'Wait for other steps.' }),
    active: t.exposeInt('active', { description: 'Run now.' }),
    deadLettered: t.exposeInt('deadLettered', { description: 'Dead letters that were not replayed.' }),
    completedLastHour: t.exposeInt('completedLastHour', { description: 'Completed in the last hour.' }),
    failedLastHour: t.exposeInt('failedLastHour', { description: 'Failed for good in the last hour.' }),
    oldestReadyAgeMs: t.expose('oldestReadyAgeMs', {
      type: 'SafeInt',
      nullable: true,
      description:
        'Milliseconds since the oldest task that could run now could run; null when there is none.',
    }),
  }),
});

QueueRef.implement({
  description: 'Where the tasks of agents wait; all agents of a queue share the slots of its pool.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('queue')),
    name: t.exposeString('name', { description: 'Unique; never changes.' }),
    pool: t.field({
      type: PoolRef,
      description: 'The pool whose slots it uses.',
      resolve: async (queue, _, { loaders }) => {
        const pool = await loaders.pool(queue.poolId);
        if (!pool) throw new Error('The pool of a queue is gone.');
        return pool;
      },
    }),
    weight: t.exposeInt('weight', {
      description:
        'Its share of the claims of its pool while all queues are busy, 0 to 100; 0 gets what the others leave. An idle share is used by the others.',
    }),
    sharedWeight: t.exposeInt('sharedWeight', {
      description:
        'Its share of elastic pools, which lend it their slots, 0 to 100; 0 is none: it keeps to its own pool.',
    }),
    paused: t.exposeBoolean('paused', {
      description: 'Whether nothing of it is claimed. What runs goes on.',
    }),
    stats: t.field({
      type: QueueStatsRef,
      nullable: true,
      description: 'What is in it.',
      resolve: (queue, _, { loaders }) => loaders.queueStats(queue.id),
    }),
    version: t.exposeInt('version', { description: 'Raised by every change.' }),
  }),
});

const SaveQueueInput = builder.inputType('SaveQueueInput', {
  description: 'A queue as a whole: what is absent takes its default. Whether it is paused stays as it is.',
  fields: (t) => ({
    name: t.string({ required: true, description: '1 to 200 bytes.' }),
    pool: t.string({ required: true, description: 'Name of its pool.' }),
    weight: t.int({
      description:
        'Its share of the claims of its pool while all queues are busy, 0 to 100; 0 gets what the others leave. Default 1.',
    }),
    sharedWeight: t.int({
      description: 'Its share of elastic pools, which lend it their slots, 0 to 100; 0 is none. Default 0.',
    }),
    ifVersion: t.int({ description: ifVersion('queue') }),
  }),
});

const SaveQueueResult = saveResult('queue', QueueRef, (loaders) => loaders.queue);

builder.queryField('queues', (t) =>
  t.field({
    type: [QueueRef],
    nullable: true,
    description: 'All queues, by name. Needs READ.',
    resolve: (_, __, context) => context.services.read.queues.all(),
  }),
);

builder.mutationFields((t) => ({
  saveQueue: t.field({
    type: SaveQueueResult,
    nullable: true,
    description: 'Creates or replaces a queue, by its name. Needs CONFIGURE.',
    args: { input: t.arg({ type: SaveQueueInput, required: true, description: 'The queue.' }) },
    resolve: (_, { input }, context) =>
      change(context, 'CONFIGURE', (actor) => context.services.configuration.saveQueue(input, actor)),
  }),
  pauseQueue: t.field({
    type: SaveQueueResult,
    nullable: true,
    description: 'Nothing of the queue is claimed any more; what runs goes on. Needs OPERATE.',
    args: {
      name: t.arg.string({ required: true, description: 'Name of the queue.' }),
      reason: t.arg.string({ description: 'Why, for the audit log.' }),
    },
    resolve: (_, input, context) =>
      change(context, 'OPERATE', (actor) => context.services.configuration.pauseQueue(input, actor)),
  }),
  resumeQueue: t.field({
    type: SaveQueueResult,
    nullable: true,
    description: 'The queue is claimed from again. Needs OPERATE.',
    args: { name: t.arg.string({ required: true, description: 'Name of the queue.' }) },
    resolve: (_, input, context) =>
      change(context, 'OPERATE', (actor) => context.services.configuration.resumeQueue(input, actor)),
  }),
}));
