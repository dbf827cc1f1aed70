import type { Assignment, ClaimTasksSuccess, LeaseStatus } from '../dispatch/types.ts';
import { toPublicId } from '../domain/ids.ts';
import { builder } from './builder.ts';
import { LeaseStateEnum } from './enums.ts';
import { ForbiddenRef, InvalidInputRef, UnavailableRef } from './problems.ts';
import { AttemptRef, TaskRef } from './refs.ts';
import { claimAllowed } from './restrictions.ts';
import { refused } from './scopes.ts';
import { ModelUsageInput } from './usage-input.ts';
import { LabelRef, toLabels } from './values.ts';

const AssignmentRef = builder.objectRef<Assignment>('Assignment').implement({
  description:
    'A claimed task with everything that its execution needs. leaseToken is the credential for everything about the attempt; it is stored nowhere.',
  fields: (t) => ({
    attemptId: t.id({
      description: 'The attempt.',
      resolve: ({ attemptId }) => toPublicId('att', attemptId),
    }),
    taskId: t.id({ description: 'The task.', resolve: ({ taskId }) => toPublicId('task', taskId) }),
    runId: t.id({ description: 'Its run.', resolve: ({ runId }) => toPublicId('run', runId) }),
    agent: t.exposeString('agent', { description: 'Name of the agent to act as.' }),
    step: t.exposeString('step', { description: 'Name of the step.' }),
    number: t.exposeInt('number', { description: 'Number of the attempt within the task, from 1.' }),
    input: t.expose('input', { type: 'JSON', nullable: true, description: 'What to work on.' }),
    labels: t.field({
      type: [LabelRef],
      description: "The run's labels and the task's own, by key.",
      resolve: ({ labels }) => toLabels(labels),
    }),
    customer: t.exposeString('customer', { nullable: true, description: 'Whom the work is for.' }),
    correlationId: t.exposeString('correlationId', { description: "The run's correlation id." }),
    serialKey: t.exposeString('serialKey', { nullable: true, description: "The task's serial key." }),
    checkpoint: t.expose('checkpoint', {
      type: 'JSON',
      nullable: true,
      description: 'What an earlier attempt left with extendLeases.',
    }),
    leaseToken: t.exposeString('leaseToken', {
      description: 'To be sent with everything about the attempt. Keep it secret.',
    }),
    leaseSeconds: t.exposeFloat('leaseSeconds', {
      description: 'The lease holds so long from when the claim was sent, by a clock that does not jump.',
    }),
    leaseExpiresAt: t.expose('leaseExpiresAt', {
      type: 'DateTime',
      description: "When the lease ends, by the database's clock.",
    }),
    timeoutSeconds: t.exposeInt('timeoutSeconds', {
      nullable: true,
      description: 'The attempt may run no longer, in seconds; null is no limit.',
    }),
    traceparent: t.exposeString('traceparent', { description: 'W3C trace context for the work.' }),
    attempt: t.field({
      type: AttemptRef,
      nullable: true,
      description: 'The attempt. Needs READ, else null.',
      resolve: ({ attemptId }, _, context) => context.loaders.attempt(attemptId),
    }),
    task: t.field({
      type: TaskRef,
      nullable: true,
      description: 'The task. Needs READ, else null.',
      resolve: ({ taskId }, _, context) => context.loaders.task(taskId),
    }),
  }),
});

const ClaimTasksInput = builder.inputType('ClaimTasksInput', {
  description: 'Which tasks a worker wants. It names agents, a pool or both; with both, both must match.',
  fields: (t) => ({
    workerId: t.string({ required: true, description: 'Names the process; fresh at each of its starts.' }),
    name: t.string({ description: 'Its name for people; absent is workerId.' }),
    agents: t.stringList({ description: 'Names of agents.' }),
    pool: t.string({
      description: 'Name of a pool. The worker runs no more of its tasks at once than the pool has slots.',
    }),
    limit: t.int({ required: true, description: 'How many tasks at most, 1 to 100.' }),
    slots: t.int({
      description: 'How many tasks the worker can run at once in all, 0 to 1,000; for figures of capacity.',
    }),
    waitSeconds: t.float({ description: 'Wait so long for a first task, 0 to 25 seconds; default 0.' }),
    leaseSeconds: t.int({ description: "5 to 3,600 seconds; absent is the agent's." }),
    idempotencyKey: t.string({
      description:
        'Repeat a claim whose answer got lost with the same key: it gives the same live assignments again.',
    }),
    client: t.string({ description: 'Client library and version.' }),
  }),
});

const ClaimTasksSuccessRef = builder.objectRef<ClaimTasksSuccess>('ClaimTasksSuccess').implement({
  description: 'What the worker got.',
  fields: (t) => ({
    assignments: t.field({
      type: [AssignmentRef],
      description: 'The tasks, best first; empty when there was nothing.',
      resolve: ({ assignments }) => assignments,
    }),
    retryAfterSeconds: t.exposeFloat('retryAfterSeconds', {
      description: 'Seconds to wait before the next claim.',
    }),
  }),
});
const ClaimTasksResult = builder.unionType('ClaimTasksResult', {
  description: 'What became of a claim.',
  types: [ClaimTasksSuccessRef, InvalidInputRef, UnavailableRef, ForbiddenRef],
  resolveType: ({ kind }) => kind,
});

const ExtendLeaseInput = builder.inputType('ExtendLeaseInput', {
  description: 'A heartbeat of an attempt. leaseToken is its credential.',
  fields: (t) => ({
    attemptId: t.id({ required: true, description: 'The attempt.' }),
    leaseToken: t.string({ required: true, description: 'The token that came with it.' }),
    progress: t.float({ description: '0 to 1.' }),
    checkpoint: t.field({ type: 'JSON', description: 'For a next attempt to go on from; at most 64 KiB.' }),
    usage: t.field({
      type: [ModelUsageInput],
      description: 'What was used so far; each entry needs a responseId.',
    }),
  }),
});
const LeaseStatusRef = builder.objectRef<LeaseStatus>('LeaseStatus').implement({
  description: 'What became of a lease that was to be extended.',
  fields: (t) => ({
    attemptId: t.exposeID('attemptId', { description: 'The attempt, as it was given.' }),
    state: t.field({ type: LeaseStateEnum, description: 'Whether to go on.', resolve: ({ state }) => state }),
    leaseSeconds: t.exposeFloat('leaseSeconds', {
      nullable: true,
      description: 'It holds so long from when the heartbeat was sent.',
    }),
    leaseExpiresAt: t.expose('leaseExpiresAt', {
      type: 'DateTime',
      nullable: true,
      description: "When it ends, by the database's clock.",
    }),
    cancelDeadline: t.expose('cancelDeadline', {
      type: 'DateTime',
      nullable: true,
      description: 'When a cancelled attempt loses it.',
    }),
  }),
});

builder.mutationFields((t) => ({
  claimTasks: t.field({
    type: ClaimTasksResult,
    nullable: true,
    description: 'Takes tasks to execute, with a lease on each. Needs WORK.',
    args: { input: t.arg({ type: ClaimTasksInput, required: true, description: 'Which tasks.' }) },
    resolve: (_, { input }, context) => refused(context, 'WORK') ?? claimAllowed(context, input),
  }),
  extendLeases: t.field({
    type: [LeaseStatusRef],
    nullable: true,
    description:
      'Keeps attempts alive and tells how far they are. Answers in input order. When the progress, checkpoint or usage of one entry is wrong, all are refused (BAD_USER_INPUT, which names it) and no lease is extended; an entry whose token is wrong is STALE and stops no other. The lease tokens are the credentials.',
    args: { leases: t.arg({ type: [ExtendLeaseInput], required: true, description: 'At most 1,000.' }) },
    resolve: (_, { leases }, { services }) => services.dispatch.extendLeases(leases),
  }),
}));
