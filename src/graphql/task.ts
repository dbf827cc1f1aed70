import { taskActions } from '../domain/allowed-actions.ts';
import { fromPublicId } from '../domain/ids.ts';
import { whyNotRetried } from '../domain/retry-refusal.ts';
import { builder } from './builder.ts';
import { AttemptConnection, MaterializationConnection, pageArgs, TaskConnection } from './connections.ts';
import { TaskActionEnum, TaskOrderEnum, TaskStatusEnum } from './enums.ts';
import { TaskFilterInput, toTaskFilter } from './filters.ts';
import { AgentRef, DeadLetterRef, idOf, Node, QueueRef, RunRef, TaskRef } from './refs.ts';
import { has, ifPayload } from './scopes.ts';
import {
  CostRef,
  ExecutionErrorRef,
  LabelRef,
  TaskCountsRef,
  toExecutionError,
  toLabels,
  toUsage,
  UsageRef,
} from './values.ts';
import { WaitingRef } from './waiting.ts';

const found = <T>(value: T | null, what: string): T => {
  if (value === null) throw new Error(`A task's ${what} is gone.`);
  return value;
};

TaskRef.implement({
  description:
    'One step of one run, or a spawned one: the unit that is queued, leased, retried and paid for.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('task')),
    run: t.field({
      type: RunRef,
      description: 'The run that it belongs to.',
      resolve: async (task, _, { loaders }) => found(await loaders.run(task.runId), 'run'),
    }),
    step: t.exposeString('step', { description: 'Name of its step.' }),
    agent: t.field({
      type: AgentRef,
      description: 'Who executes it.',
      resolve: async (task, _, { loaders }) => found(await loaders.agent(task.agentId), 'agent'),
    }),
    queue: t.field({
      type: QueueRef,
      description: "Its agent's queue, where it waits.",
      resolve: async (task, _, { loaders }) => found(await loaders.queue(task.queueId), 'queue'),
    }),
    status: t.field({
      type: TaskStatusEnum,
      description: 'Where it is on its way.',
      resolve: ({ status }) => status,
    }),
    waiting: t.field({
      type: WaitingRef,
      nullable: true,
      description: 'Why it does not run, and until when as far as known; null when it runs or is terminal.',
      resolve: (task, _, { loaders }) => loaders.taskWaiting(task.id),
    }),
    priority: t.exposeInt('priority', { description: '-1000 to 1000, higher first.' }),
    serialKey: t.exposeString('serialKey', {
      nullable: true,
      description: 'At most one task runs per agent and serial key, in enqueue order.',
    }),
    labels: t.field({
      type: [LabelRef],
      description: "The run's labels and its own, by key.",
      resolve: ({ labels }) => toLabels(labels),
    }),
    customer: t.exposeString('customer', { nullable: true, description: 'Whom the work is for.' }),
    correlationId: t.exposeString('correlationId', { description: "The run's correlation id." }),
    input: t.field({
      type: 'JSON',
      nullable: true,
      description:
        'What its agent gets; null while a template waits for other steps. Needs PAYLOAD_READ, else null.',
      resolve: async (task, _, context) =>
        (await ifPayload(context, () => context.loaders.taskPayload(task.id)))?.input,
    }),
    output: t.field({
      type: 'JSON',
      nullable: true,
      description: 'What its agent gave. Needs PAYLOAD_READ, else null.',
      resolve: async (task, _, context) =>
        (await ifPayload(context, () => context.loaders.taskPayload(task.id)))?.output,
    }),
    error: t.field({
      type: ExecutionErrorRef,
      nullable: true,
      description: 'Why it failed.',
      resolve: (task) => toExecutionError(task),
    }),
    confidence: t.exposeFloat('confidence', {
      nullable: true,
      description: '0 to 1, as its agent reported it.',
    }),
    progress: t.exposeFloat('progress', {
      nullable: true,
      description: "0 to 1, from its worker's heartbeats.",
    }),
    estimatedTokens: t.expose('estimatedTokens', {
      type: 'SafeInt',
      nullable: true,
      description: 'Tokens that it is expected to use.',
    }),
    usage: t.field({
      type: UsageRef,
      nullable: true,
      description: 'Tokens of all its attempts; null when none were booked.',
      resolve: async (task, _, { loaders }) => toUsage(await loaders.taskTotals(task.id)),
    }),
    cost: t.field({
      type: CostRef,
      nullable: true,
      description: 'Cost of all its attempts so far.',
      resolve: (task, _, { loaders }) => loaders.taskTotals(task.id),
    }),
    attemptCount: t.int({
      description: 'All its attempts, the running one included.',
      resolve: async (task, _, { loaders }) => (await loaders.taskAttemptCounts(task.id))?.attemptCount ?? 0,
    }),
    attemptsUsed: t.int({
      description:
        'Its attempts that count against maxAttempts; an operator who retries it starts at 0 again.',
      resolve: async (task, _, { loaders }) => (await loaders.taskAttemptCounts(task.id))?.attemptsUsed ?? 0,
    }),
    maxAttempts: t.exposeInt('maxAttempts', { description: 'Attempts that count before it fails.' }),
    attempts: t.field({
      type: AttemptConnection,
      nullable: true,
      description: 'Its attempts, by number.',
      args: pageArgs,
      resolve: (task, page, { loaders }) => loaders.taskAttempts(task.id, page),
    }),
    dependencies: t.field({
      type: TaskConnection,
      nullable: true,
      description:
        'The tasks that it waits for, or waited for: those of the steps that it depends on, and all below them.',
      args: pageArgs,
      resolve: (task, page, { loaders }) => loaders.taskDependencies(task.id, page),
    }),
    parent: t.field({
      type: TaskRef,
      nullable: true,
      description: 'The task whose result spawned it; null for a step of the job.',
      resolve: ({ parentTaskId }, _, { loaders }) =>
        parentTaskId === null ? null : loaders.task(parentTaskId),
    }),
    children: t.field({
      type: TaskConnection,
      nullable: true,
      description: 'The tasks that its result spawned, in order.',
      args: pageArgs,
      resolve: (task, page, { loaders }) => loaders.taskChildren(task.id, page),
    }),
    takenOverFrom: t.field({
      type: TaskRef,
      nullable: true,
      description:
        'The task of an earlier run whose output a rerun took over: this one was not executed. Null for every other task, and when that one was deleted.',
      resolve: ({ takenOverFrom }, _, { loaders }) =>
        takenOverFrom === null ? null : loaders.task(takenOverFrom),
    }),
    materializations: t.field({
      type: MaterializationConnection,
      nullable: true,
      description: 'What it produced.',
      args: pageArgs,
      resolve: (task, page, { loaders }) => loaders.taskMaterializations(task.id, page),
    }),
    deadLetter: t.field({
      type: DeadLetterRef,
      nullable: true,
      description: 'What it left when it failed for good.',
      resolve: (task, _, { loaders }) => loaders.taskDeadLetter(task.id),
    }),
    availableAt: t.expose('availableAt', { type: 'DateTime', description: 'When it may, or might, start.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it came into being.' }),
    cancelRequestedAt: t.expose('cancelRequestedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When its cancel was requested.',
    }),
    allowedActions: t.field({
      type: [TaskActionEnum],
      description:
        'What the caller may do now, by the scopes and by what would refuse it: RETRY is missing while the run is being ' +
        'cancelled, when a step that it needs did not complete, and when its input template failed for this run.',
      resolve: async ({ id, status, cancelRequestedAt }, _, context) => {
        if (!has(context, 'OPERATE')) return [];
        const { loaders } = context;
        const isDelayed = status === 'ENQUEUED' && (await loaders.delayedTask(id)) !== null;
        const retry = status === 'FAILED' || status === 'CANCELLED' ? await loaders.taskRetryFacts(id) : null;
        const isRetriable = retry !== null && whyNotRetried(retry) === null;
        return taskActions({ status, cancelRequested: cancelRequestedAt !== null, isDelayed, isRetriable });
      },
    }),
    startedAt: t.expose('startedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When its first attempt started.',
    }),
    finishedAt: t.expose('finishedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it became terminal.',
    }),
  }),
});

builder.queryFields((t) => ({
  task: t.field({
    type: TaskRef,
    nullable: true,
    description: 'A task by its id; null when there is none. Needs READ.',
    args: { id: t.arg.id({ required: true, description: 'task_…' }) },
    resolve: (_, { id }, context) => {
      const uuid = fromPublicId('task', id);
      return uuid === null ? null : context.loaders.task(uuid);
    },
  }),
  tasks: t.field({
    type: TaskConnection,
    nullable: true,
    description: 'Tasks. Needs READ.',
    args: {
      ...pageArgs,
      filter: t.arg({ type: TaskFilterInput, description: 'Which tasks; absent is all.' }),
      orderBy: t.arg({ type: TaskOrderEnum, defaultValue: 'CREATED_DESC', description: 'Their order.' }),
    },
    resolve: (_, { filter, orderBy, ...page }, context) =>
      context.services.read.tasks.list(toTaskFilter(filter), orderBy ?? 'CREATED_DESC', page),
  }),
  taskCounts: t.field({
    type: TaskCountsRef,
    nullable: true,
    description: 'Tasks by status. Needs READ.',
    args: { filter: t.arg({ type: TaskFilterInput, description: 'Which tasks; absent is all.' }) },
    resolve: (_, { filter }, context) => context.services.read.counts.ofTasks(toTaskFilter(filter)),
  }),
}));
