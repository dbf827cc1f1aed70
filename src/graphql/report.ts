import { toPublicId } from '../domain/ids.ts';
import type { ReportResultSuccess } from '../result/types.ts';
import { builder } from './builder.ts';
import {
  ErrorKindEnum,
  ResultOutcomeEnum,
  ResultStatusEnum,
  StepConditionEnum,
  TaskStatusEnum,
} from './enums.ts';
import { LabelInput } from './label-input.ts';
import {
  ForbiddenRef,
  InvalidInputRef,
  LeaseTokenInvalidRef,
  ResultConflictRef,
  UnavailableRef,
} from './problems.ts';
import { AttemptRef, TaskRef } from './refs.ts';
import { traced } from './traced.ts';
import { ModelUsageInput } from './usage-input.ts';

const ExecutionErrorInput = builder.inputType('ExecutionErrorInput', {
  description: 'Why an attempt failed.',
  fields: (t) => ({
    code: t.string({
      required: true,
      description: "The agent's own word; retry policies may have rules for it.",
    }),
    message: t.string({ required: true, description: 'In words; cut at 8,192 bytes.' }),
    kind: t.field({
      type: ErrorKindEnum,
      description: 'What it says about a next attempt; default TRANSIENT.',
    }),
    retryAfterSeconds: t.float({
      description:
        '0 to 604,800 seconds. With RATE_LIMITED, PROVIDER_DOWN and QUOTA_EXHAUSTED the throttles are held back so long (default 30); else this task alone waits, by default as its retry policy says.',
    }),
    throttle: t.string({
      description:
        "The throttle to hold back, with the kinds that do; absent, or a name that is none of the agent's throttles, is all of them.",
    }),
  }),
});

const MaterializationInput = builder.inputType('MaterializationInput', {
  description: 'Something that the attempt produced.',
  fields: (t) => ({
    assetKey: t.string({ required: true, description: 'Key of the asset.' }),
    partition: t.string({ description: 'Which part of it.' }),
    metadata: t.field({ type: 'JSON', description: 'What is to be known about it; at most 16 KiB.' }),
  }),
});

const SpawnTaskInput = builder.inputType('SpawnTaskInput', {
  description:
    "A task that a result asks for. It inherits the run's customer, labels and correlation id. Steps that depend on its step, or on a step above it, wait for it too.",
  fields: (t) => ({
    step: t.string({
      required: true,
      description: 'Its step, of the job or new. Refused when a task that depends on the step ran already.',
    }),
    agent: t.string({ required: true, description: 'Who executes it.' }),
    input: t.field({
      type: 'JSON',
      description: "What its agent gets; absent is the run's config. At most 1 MiB.",
    }),
    dependsOn: t.stringList({
      description:
        'Steps, at most 100: it waits for all tasks of each, spawned ones and all below them included. Never for a step that is not over before itself.',
    }),
    when: t.field({
      type: StepConditionEnum,
      description: 'How its dependencies must have ended; default DEPENDENCIES_COMPLETED.',
    }),
    optional: t.boolean({
      description: 'Its final failure fails neither the run nor what waits for it; default false.',
    }),
    priority: t.int({ description: '-1000 to 1000; default that of the task that spawns it.' }),
    estimatedTokens: t.field({ type: 'SafeInt', description: 'Tokens that it is expected to use.' }),
    maxAttempts: t.int({ description: "1 to 1000; default that of the agent's retry policy." }),
    serialKey: t.string({
      description: 'At most one task runs per agent and serial key, in enqueue order; default none.',
    }),
    labels: t.field({ type: [LabelInput], description: "Its own, beside the run's; at most 32 together." }),
    availableAt: t.field({ type: 'DateTime', description: 'Not before this time; default at once.' }),
  }),
});

const ReportResultInput = builder.inputType('ReportResultInput', {
  description: 'How an attempt ended. leaseToken is its credential, also after the lease is gone.',
  fields: (t) => ({
    attemptId: t.id({ required: true, description: 'The attempt.' }),
    leaseToken: t.string({ required: true, description: 'The token that came with it.' }),
    status: t.field({ type: ResultStatusEnum, required: true, description: 'How it ended.' }),
    output: t.field({ type: 'JSON', description: 'What it gave.' }),
    error: t.field({ type: ExecutionErrorInput, description: 'Why it failed.' }),
    usage: t.field({
      type: [ModelUsageInput],
      description: 'What it used; booked whatever becomes of the result.',
    }),
    confidence: t.float({ description: '0 to 1.' }),
    traceId: t.string({
      description: 'W3C trace id of the work: 32 hexadecimal digits in lower case, not all 0.',
    }),
    externalRunId: t.string({ description: 'Id of the run in the system that did the work.' }),
    materializations: t.field({
      type: [MaterializationInput],
      description: 'What it produced: at most 1,000, each partition of an asset once.',
    }),
    spawn: t.field({
      type: [SpawnTaskInput],
      description:
        'Follow-up tasks of the same run, enqueued in the transaction of the result: at most 1,000, and 100,000 tasks a run. Only with COMPLETED. A task or run whose cancel was requested spawns nothing. What is impossible is InvalidInput and the attempt goes on.',
    }),
  }),
});

const ReportResultSuccessRef = builder.objectRef<ReportResultSuccess>('ReportResultSuccess').implement({
  description:
    'The result is known. A terminal task keeps its status; usage and cost are booked all the same.',
  fields: (t) => ({
    outcome: t.field({
      type: ResultOutcomeEnum,
      description: 'What it changed.',
      resolve: ({ outcome }) => outcome,
    }),
    taskId: t.id({ description: 'The task.', resolve: ({ taskId }) => toPublicId('task', taskId) }),
    taskStatus: t.field({
      type: TaskStatusEnum,
      description: 'The status of the task since.',
      resolve: ({ taskStatus }) => taskStatus,
    }),
    task: t.field({
      type: TaskRef,
      nullable: true,
      description: 'The task. Needs READ, else null.',
      resolve: ({ taskId }, _, context) => context.loaders.task(taskId),
    }),
    attempt: t.field({
      type: AttemptRef,
      nullable: true,
      description: 'The attempt. Needs READ, else null.',
      resolve: ({ attemptId }, _, context) => context.loaders.attempt(attemptId),
    }),
  }),
});

const ReportResultResult = builder.unionType('ReportResultResult', {
  description: 'What became of a result.',
  types: [
    ReportResultSuccessRef,
    LeaseTokenInvalidRef,
    ResultConflictRef,
    InvalidInputRef,
    UnavailableRef,
    ForbiddenRef,
  ],
  resolveType: ({ kind }) => kind,
});

builder.mutationFields((t) => ({
  reportResult: t.field({
    type: ReportResultResult,
    nullable: true,
    description:
      'Ends an attempt with its result. Repeating it changes nothing. The lease token is the credential.',
    args: { input: t.arg({ type: ReportResultInput, required: true, description: 'The result.' }) },
    resolve: async (_, { input }, context) =>
      (await context.services.results.reportResults([traced(input, context)]))[0],
  }),
  reportResults: t.field({
    type: [ReportResultResult],
    nullable: true,
    description:
      'Reports results, each on its own. Answers in input order. The lease tokens are the credentials.',
    args: { inputs: t.arg({ type: [ReportResultInput], required: true, description: 'At most 1,000.' }) },
    resolve: (_, { inputs }, context) =>
      context.services.results.reportResults(inputs.map((input) => traced(input, context))),
  }),
}));
