import { fromPublicId, toPublicId } from '../domain/ids.ts';
import { notFound } from '../domain/problems.ts';
import type { BulkSuccess, RunActionSuccess, TaskActionSuccess } from '../operator/types.ts';
import { builder } from './builder.ts';
import { RunStatusEnum, TaskStatusEnum } from './enums.ts';
import {
  DeadLetterFilterInput,
  RunFilterInput,
  TaskFilterInput,
  toDeadLetterFilter,
  toRunFilter,
  toTaskFilter,
} from './filters.ts';
import { ForbiddenRef, IllegalStateRef, InvalidInputRef, NotFoundRef } from './problems.ts';
import { RunRef, TaskRef } from './refs.ts';
import { change } from './save.ts';
import { ifReadable } from './scopes.ts';

const TaskActionSuccessRef = builder.objectRef<TaskActionSuccess>('TaskActionSuccess').implement({
  description: 'The action was done, or had been done before.',
  fields: (t) => ({
    taskId: t.id({ description: 'The task.', resolve: ({ taskId }) => toPublicId('task', taskId) }),
    taskStatus: t.expose('taskStatus', { type: TaskStatusEnum, description: 'Its status after the action.' }),
    task: t.field({
      type: TaskRef,
      nullable: true,
      description: 'The task as it is now. Needs READ, else null.',
      resolve: ({ taskId }, _, context) => ifReadable(context, () => context.loaders.task(taskId)),
    }),
  }),
});
const TaskActionResult = builder.unionType('TaskActionResult', {
  description: 'What became of an action on a task.',
  types: [TaskActionSuccessRef, NotFoundRef, IllegalStateRef, InvalidInputRef, ForbiddenRef],
  resolveType: ({ kind }) => kind,
});

const RunActionSuccessRef = builder.objectRef<RunActionSuccess>('RunActionSuccess').implement({
  description: 'The action was done, or had been done before.',
  fields: (t) => ({
    runId: t.id({ description: 'The run.', resolve: ({ runId }) => toPublicId('run', runId) }),
    runStatus: t.expose('runStatus', { type: RunStatusEnum, description: 'Its status after the action.' }),
    run: t.field({
      type: RunRef,
      nullable: true,
      description: 'The run as it is now. Needs READ, else null.',
      resolve: ({ runId }, _, context) => ifReadable(context, () => context.loaders.run(runId)),
    }),
  }),
});
const RunActionResult = builder.unionType('RunActionResult', {
  description: 'What became of an action on a run.',
  types: [RunActionSuccessRef, NotFoundRef, IllegalStateRef, InvalidInputRef, ForbiddenRef],
  resolveType: ({ kind }) => kind,
});

const BulkSuccessRef = builder.objectRef<BulkSuccess>('BulkSuccess').implement({
  description: 'What an action by filter did, in one transaction, oldest first.',
  fields: (t) => ({
    matched: t.exposeInt('matched', {
      description: 'Objects that the filter and the action match, up to the limit.',
    }),
    changed: t.exposeInt('changed', { description: 'Objects that it changed; 0 for a dry run.' }),
    hasMore: t.exposeBoolean('hasMore', { description: 'More match than the limit allows: call again.' }),
  }),
});
const BulkResult = builder.unionType('BulkResult', {
  description: 'What became of an action by filter.',
  types: [BulkSuccessRef, InvalidInputRef, ForbiddenRef],
  resolveType: ({ kind }) => kind,
});

const reason = { description: 'Why, for the audit log and the change log; at most 8,192 bytes.' };
const dryRun = { defaultValue: false, description: 'Only count what would be changed.' };
const priority = {
  description: '-1000 to 1000; default 100 above what it had, so that an operator goes first.',
};
const limit = { description: 'Most objects of one call, 1 to 10,000; default 10,000.' };

builder.mutationFields((t) => ({
  cancelTask: t.field({
    type: TaskActionResult,
    nullable: true,
    description:
      'Cancels a task, protected or not: at once while it waits; while it is executed its worker is asked to stop and has 30 s. Needs OPERATE.',
    args: { taskId: t.arg.id({ required: true, description: 'The task.' }), reason: t.arg.string(reason) },
    resolve: (_, args, context) =>
      change(context, 'OPERATE', async (actor) => {
        const taskId = fromPublicId('task', args.taskId);
        if (taskId === null) return notFound('task', args.taskId);
        return context.services.actions.cancelTask({ taskId, reason: args.reason }, actor);
      }),
  }),
  cancelRun: t.field({
    type: RunActionResult,
    nullable: true,
    description:
      'Cancels a run with all its tasks but the protected ones; it is CANCELLING until the last of them is over. Needs OPERATE.',
    args: { runId: t.arg.id({ required: true, description: 'The run.' }), reason: t.arg.string(reason) },
    resolve: (_, args, context) =>
      change(context, 'OPERATE', async (actor) => {
        const runId = fromPublicId('run', args.runId);
        if (runId === null) return notFound('run', args.runId);
        return context.services.actions.cancelRun({ runId, reason: args.reason }, actor);
      }),
  }),
  cancelTasks: t.field({
    type: BulkResult,
    nullable: true,
    description:
      'Cancels the tasks that match, but the protected ones. An empty filter is refused. Needs OPERATE.',
    args: {
      filter: t.arg({ type: TaskFilterInput, required: true, description: 'Which tasks.' }),
      reason: t.arg.string(reason),
      dryRun: t.arg.boolean(dryRun),
      limit: t.arg.int(limit),
    },
    resolve: (_, { filter, ...rest }, context) =>
      change(context, 'OPERATE', (actor) =>
        context.services.actions.cancelTasks({ ...rest, filter: toTaskFilter(filter) }, actor),
      ),
  }),
  cancelRuns: t.field({
    type: BulkResult,
    nullable: true,
    description:
      'Cancels the runs that match, but their protected tasks. An empty filter is refused. Needs OPERATE.',
    args: {
      filter: t.arg({ type: RunFilterInput, required: true, description: 'Which runs.' }),
      reason: t.arg.string(reason),
      dryRun: t.arg.boolean(dryRun),
      limit: t.arg.int(limit),
    },
    resolve: (_, { filter, ...rest }, context) =>
      change(context, 'OPERATE', (actor) =>
        context.services.actions.cancelRuns({ ...rest, filter: toRunFilter(filter) }, actor),
      ),
  }),
  retryTask: t.field({
    type: TaskActionResult,
    nullable: true,
    description:
      'Tries a failed or cancelled task again, on the same row: its attempts so far count no more, its run goes on, and steps that failed because of it wait again. Needs OPERATE.',
    args: { taskId: t.arg.id({ required: true, description: 'The task.' }), priority: t.arg.int(priority) },
    resolve: (_, args, context) =>
      change(context, 'OPERATE', async (actor) => {
        const taskId = fromPublicId('task', args.taskId);
        if (taskId === null) return notFound('task', args.taskId);
        return context.services.actions.retryTask({ taskId, priority: args.priority }, actor);
      }),
  }),
  retryTasks: t.field({
    type: BulkResult,
    nullable: true,
    description:
      'Tries the failed and cancelled tasks that match again. An empty filter is refused. Needs OPERATE.',
    args: {
      filter: t.arg({ type: TaskFilterInput, required: true, description: 'Which tasks.' }),
      priority: t.arg.int(priority),
      dryRun: t.arg.boolean(dryRun),
      limit: t.arg.int(limit),
    },
    resolve: (_, { filter, ...rest }, context) =>
      change(context, 'OPERATE', (actor) =>
        context.services.actions.retryTasks({ ...rest, filter: toTaskFilter(filter) }, actor),
      ),
  }),
  replayDeadLetter: t.field({
    type: TaskActionResult,
    nullable: true,
    description:
      'Tries the task of a dead letter again. Failing once more makes the same letter grow. Needs OPERATE.',
    args: {
      id: t.arg.id({ required: true, description: 'The dead letter.' }),
      priority: t.arg.int(priority),
    },
    resolve: (_, args, context) =>
      change(context, 'OPERATE', async (actor) => {
        const id = fromPublicId('dlq', args.id);
        if (id === null) return notFound('dead letter', args.id);
        return context.services.actions.replayDeadLetter({ id, priority: args.priority }, actor);
      }),
  }),
  replayDeadLetters: t.field({
    type: BulkResult,
    nullable: true,
    description:
      'Tries the tasks of the dead letters that match again. An empty filter is refused. Needs OPERATE.',
    args: {
      filter: t.arg({ type: DeadLetterFilterInput, required: true, description: 'Which dead letters.' }),
      priority: t.arg.int(priority),
      dryRun: t.arg.boolean(dryRun),
      limit: t.arg.int(limit),
    },
    resolve: (_, { filter, ...rest }, context) =>
      change(context, 'OPERATE', (actor) =>
        context.services.actions.replayDeadLetters({ ...rest, filter: toDeadLetterFilter(filter) }, actor),
      ),
  }),
}));
