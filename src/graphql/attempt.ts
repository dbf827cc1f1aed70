import { fromPublicId, toPublicId } from '../domain/ids.ts';
import { builder } from './builder.ts';
import { AttemptEventConnection, pageArgs } from './connections.ts';
import { AttemptStatusEnum } from './enums.ts';
import { AttemptRef, idOf, Node, TaskRef } from './refs.ts';
import { CostRef, ExecutionErrorRef, toExecutionError, toUsage, UsageRef } from './values.ts';

AttemptRef.implement({
  description: 'One execution of a task, with its own lease, worker, usage and cost.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('att')),
    task: t.field({
      type: TaskRef,
      description: 'The task that it executes.',
      resolve: async (attempt, _, { loaders }) => {
        const task = await loaders.task(attempt.taskId);
        if (!task) throw new Error('The task of an attempt is gone.');
        return task;
      },
    }),
    number: t.exposeInt('number', { description: '1, 2, 3 … within the task, without gaps.' }),
    status: t.field({
      type: AttemptStatusEnum,
      description: 'How it stands or ended.',
      resolve: ({ status }) => status,
    }),
    counted: t.exposeBoolean('counted', {
      description: 'Whether it counts against maxAttempts; false while it runs.',
    }),
    workerId: t.id({
      nullable: true,
      description: 'The worker that executes it, wrk_….',
      resolve: ({ workerId }) => toPublicId('wrk', workerId),
    }),
    externalRunId: t.exposeString('externalRunId', {
      nullable: true,
      description: 'Id of the run in the system that did the work.',
    }),
    traceId: t.exposeString('traceId', {
      nullable: true,
      description: 'W3C trace id: as its worker reported it, else that of the traceparent it was given.',
    }),
    error: t.field({
      type: ExecutionErrorRef,
      nullable: true,
      description: 'Why it did not complete.',
      resolve: (attempt) => toExecutionError(attempt),
    }),
    usage: t.field({
      type: UsageRef,
      nullable: true,
      description: 'Its tokens; null when none were booked.',
      resolve: async (attempt, _, { loaders }) => toUsage(await loaders.attemptTotals(attempt.id)),
    }),
    cost: t.field({
      type: CostRef,
      nullable: true,
      description: 'What it cost so far.',
      resolve: (attempt, _, { loaders }) => loaders.attemptTotals(attempt.id),
    }),
    late: t.exposeBoolean('late', {
      description: 'Whether its result came after its lease was lost: its cost counts, its outcome may not.',
    }),
    sanitized: t.exposeBoolean('sanitized', {
      description: 'Whether text of its result or events had to be repaired (NUL, lone surrogates).',
    }),
    events: t.field({
      type: AttemptEventConnection,
      nullable: true,
      description: 'What it told of its progress, by sequence.',
      args: pageArgs,
      resolve: (attempt, page, { loaders }) => loaders.attemptEvents(attempt.id, page),
    }),
    startedAt: t.expose('startedAt', { type: 'DateTime', description: 'When it was claimed.' }),
    leaseExpiresAt: t.expose('leaseExpiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When its lease is lost unless it is extended; null when it ended.',
    }),
    finishedAt: t.expose('finishedAt', { type: 'DateTime', nullable: true, description: 'When it ended.' }),
  }),
});

builder.queryField('attempt', (t) =>
  t.field({
    type: AttemptRef,
    nullable: true,
    description: 'An attempt by its id; null when there is none. Needs READ.',
    args: { id: t.arg.id({ required: true, description: 'att_…' }) },
    resolve: (_, { id }, context) => {
      const uuid = fromPublicId('att', id);
      return uuid === null ? null : context.loaders.attempt(uuid);
    },
  }),
);
