import { runActions } from '../domain/allowed-actions.ts';
import { fromPublicId } from '../domain/ids.ts';
import { inNfc } from '../domain/text.ts';
import { builder } from './builder.ts';
import { pageArgs, RunConnection, TaskConnection } from './connections.ts';
import { RunActionEnum, RunStatusEnum } from './enums.ts';
import { RunFilterInput, TaskFilterInput, toRunFilter, toTaskFilter } from './filters.ts';
import { JobStepRef, toSteps } from './job-step.ts';
import { EventRef, idOf, JobRef, Node, RunRef, TaskRef } from './refs.ts';
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

RunRef.implement({
  description: 'One launch of a job.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('run')),
    job: t.field({
      type: JobRef,
      description: 'The job as it is now.',
      resolve: async (run, _, { loaders }) => (await loaders.job(run.jobId)) ?? gone('job'),
    }),
    jobVersion: t.exposeInt('jobVersion', {
      description: 'The version of the job that it was launched with and keeps.',
    }),
    steps: t.field({
      type: [JobStepRef],
      description: 'The steps of that version.',
      resolve: async (run, _, { loaders }) =>
        toSteps(await loaders.stepsOfVersion(`${run.jobId} ${run.jobVersion}`)),
    }),
    status: t.field({
      type: RunStatusEnum,
      description: 'Derived from its tasks.',
      resolve: ({ status }) => status,
    }),
    config: t.field({
      type: 'JSON',
      nullable: true,
      description: 'What it was launched with. Needs PAYLOAD_READ, else null.',
      resolve: async (run, _, context) =>
        (await ifPayload(context, () => context.loaders.runConfig(run.id)))?.config,
    }),
    correlationId: t.exposeString('correlationId', {
      description: 'Ties together everything that belongs to one piece of work.',
    }),
    idempotencyKey: t.exposeString('idempotencyKey', {
      nullable: true,
      description: 'The key of its launch; of a debounced run the key of the newest.',
    }),
    serialKey: t.exposeString('serialKey', {
      nullable: true,
      description: 'At most one task runs per agent and serial key, in enqueue order.',
    }),
    debounceKey: t.exposeString('debounceKey', {
      nullable: true,
      description: 'Launches of the job with this key change the run while it waits.',
    }),
    customer: t.exposeString('customer', { nullable: true, description: 'Whom the work is for.' }),
    labels: t.field({
      type: [LabelRef],
      description: 'Its labels, by key.',
      resolve: ({ labels }) => toLabels(labels),
    }),
    priority: t.exposeInt('priority', {
      description: '-1000 to 1000, higher first; steps may have their own.',
    }),
    event: t.field({
      type: EventRef,
      nullable: true,
      description: 'The event that launched it.',
      resolve: ({ eventId }, _, { loaders }) => (eventId === null ? null : loaders.event(eventId)),
    }),
    parentRun: t.field({
      type: RunRef,
      nullable: true,
      description: 'The run that this one executes again.',
      resolve: ({ parentRunId }, _, { loaders }) => (parentRunId === null ? null : loaders.run(parentRunId)),
    }),
    tasks: t.field({
      type: TaskConnection,
      nullable: true,
      description: 'Its tasks, in the order of their steps.',
      args: {
        ...pageArgs,
        filter: t.arg({ type: TaskFilterInput, description: 'Which of them.' }),
      },
      resolve: (run, { filter, ...page }, { loaders }) =>
        loaders.tasksOfRun(run.id, toTaskFilter(filter), page),
    }),
    taskOfStep: t.field({
      type: TaskRef,
      nullable: true,
      description: 'The task of a step of the job; null for a step that only spawned tasks have.',
      args: { step: t.arg.string({ required: true, description: 'Name of the step.' }) },
      resolve: (run, { step }, { loaders }) => loaders.taskOfStep(`${run.id} ${inNfc(step)}`),
    }),
    taskCounts: t.field({
      type: TaskCountsRef,
      nullable: true,
      description: 'Its tasks by status.',
      resolve: (run, _, { loaders }) => loaders.runTaskCounts(run.id),
    }),
    error: t.field({
      type: ExecutionErrorRef,
      nullable: true,
      description: 'Of the task that decided a FAILED run.',
      resolve: (run) => toExecutionError(run),
    }),
    usage: t.field({
      type: UsageRef,
      nullable: true,
      description: 'Tokens of all its attempts; null when none were booked.',
      resolve: async (run, _, { loaders }) => toUsage(await loaders.runTotals(run.id)),
    }),
    cost: t.field({
      type: CostRef,
      nullable: true,
      description: 'Cost of all its attempts so far.',
      resolve: (run, _, { loaders }) => loaders.runTotals(run.id),
    }),
    availableAt: t.expose('availableAt', {
      type: 'DateTime',
      description: 'When its first tasks may start.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was launched.' }),
    allowedActions: t.field({
      type: [RunActionEnum],
      description: 'What the caller may do now, by its status and the scopes.',
      resolve: ({ status, cancelRequestedAt }, _, context) =>
        runActions({ status, cancelRequested: cancelRequestedAt !== null }).filter((action) =>
          has(context, action === 'RERUN' ? 'LAUNCH' : 'OPERATE'),
        ),
    }),
    startedAt: t.expose('startedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When its first task was claimed.',
    }),
    cancelRequestedAt: t.expose('cancelRequestedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When someone asked to cancel it.',
    }),
    finishedAt: t.expose('finishedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it became terminal.',
    }),
  }),
});

const gone = (what: string): never => {
  throw new Error(`A run's ${what} is gone.`);
};

builder.queryFields((t) => ({
  run: t.field({
    type: RunRef,
    nullable: true,
    description: 'A run by its id; null when there is none. Needs READ.',
    args: { id: t.arg.id({ required: true, description: 'run_…' }) },
    resolve: (_, { id }, context) => {
      const uuid = fromPublicId('run', id);
      return uuid === null ? null : context.loaders.run(uuid);
    },
  }),
  runs: t.field({
    type: RunConnection,
    nullable: true,
    description: 'Runs, newest first. Needs READ.',
    args: { ...pageArgs, filter: t.arg({ type: RunFilterInput, description: 'Which runs; absent is all.' }) },
    resolve: (_, { filter, ...page }, context) => context.services.read.runs.list(toRunFilter(filter), page),
  }),
}));
