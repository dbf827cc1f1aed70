import type { RunChange, TaskChange } from '../changelog/types.ts';
import { toPublicId, toPublicLogId } from '../domain/ids.ts';
import { builder } from './builder.ts';
import {
  ChangeStream,
  type RunChanges,
  type TaskChanges,
  toRunChangeFilter,
  toTaskChangeFilter,
} from './change-stream.ts';
import { RunStatusEnum, TaskStatusEnum } from './enums.ts';
import { RunFilterInput, TaskFilterInput } from './filters.ts';
import { RunRef, TaskRef } from './refs.ts';

const says = {
  id: 'The change, chg_…: the same whenever it is sent again.',
  sequence: "Its number among the object's changes: 1, 2, 3 … without gaps; 1 is the creation.",
  at: 'When it was made.',
  cursor: 'Resume after it to get everything that comes after this message.',
  caughtUp: 'Whether the backlog is through: what follows is live.',
};

const TaskStatusChange = builder.objectRef<TaskChange>('TaskStatusChange').implement({
  description: 'A change of the status of a task.',
  fields: (t) => ({
    id: t.id({ description: says.id, resolve: ({ number }) => toPublicLogId('chg', number) }),
    sequence: t.exposeInt('sequence', { description: says.sequence }),
    at: t.expose('at', { type: 'DateTime', description: says.at }),
    taskId: t.id({ description: 'The task.', resolve: ({ taskId }) => toPublicId('task', taskId) }),
    runId: t.id({ description: 'Its run.', resolve: ({ runId }) => toPublicId('run', runId) }),
    job: t.exposeString('job', { description: "Name of the run's job." }),
    step: t.exposeString('step', { description: 'Name of its step.' }),
    agent: t.exposeString('agent', { description: 'Name of its agent.' }),
    attemptId: t.id({
      nullable: true,
      description: 'The attempt that started or ended with the change.',
      resolve: ({ attemptId }) => (attemptId === null ? null : toPublicId('att', attemptId)),
    }),
    attemptNumber: t.exposeInt('attemptNumber', { nullable: true, description: 'Number of that attempt.' }),
    fromStatus: t.field({
      type: TaskStatusEnum,
      nullable: true,
      description: 'The status before; null at the creation.',
      resolve: ({ fromStatus }) => fromStatus,
    }),
    toStatus: t.field({
      type: TaskStatusEnum,
      description: 'The status after the change.',
      resolve: ({ toStatus }) => toStatus,
    }),
    errorCode: t.exposeString('errorCode', {
      nullable: true,
      description: 'Code of the error that caused it.',
    }),
    reason: t.exposeString('reason', { nullable: true, description: 'Why, where someone said it.' }),
    task: t.field({
      type: TaskRef,
      nullable: true,
      description: 'The task as it is now, which may be further on.',
      resolve: ({ taskId }, _, { loaders }) => loaders.task(taskId),
    }),
  }),
});

const RunStatusChange = builder.objectRef<RunChange>('RunStatusChange').implement({
  description: 'A change of the status of a run.',
  fields: (t) => ({
    id: t.id({ description: says.id, resolve: ({ number }) => toPublicLogId('chg', number) }),
    sequence: t.exposeInt('sequence', { description: says.sequence }),
    at: t.expose('at', { type: 'DateTime', description: says.at }),
    runId: t.id({ description: 'The run.', resolve: ({ runId }) => toPublicId('run', runId) }),
    job: t.exposeString('job', { description: 'Name of its job.' }),
    fromStatus: t.field({
      type: RunStatusEnum,
      nullable: true,
      description: 'The status before; null at the launch.',
      resolve: ({ fromStatus }) => fromStatus,
    }),
    toStatus: t.field({
      type: RunStatusEnum,
      description: 'The status after the change.',
      resolve: ({ toStatus }) => toStatus,
    }),
    reason: t.exposeString('reason', { nullable: true, description: 'Why, where someone said it.' }),
    run: t.field({
      type: RunRef,
      nullable: true,
      description: 'The run as it is now, which may be further on.',
      resolve: ({ runId }, _, { loaders }) => loaders.run(runId),
    }),
  }),
});

export const TaskStatusChanges = builder.objectRef<TaskChanges>('TaskStatusChanges').implement({
  description:
    'A message of the stream, or a page of the log. On a stream an empty one every 15 s carries the cursor forward.',
  fields: (t) => ({
    cursor: t.expose('cursor', { type: 'Cursor', description: says.cursor }),
    caughtUp: t.exposeBoolean('caughtUp', { description: says.caughtUp }),
    changes: t.field({
      type: [TaskStatusChange],
      description: 'Changes, in order per task.',
      resolve: ({ changes }) => changes,
    }),
  }),
});
export const RunStatusChanges = builder.objectRef<RunChanges>('RunStatusChanges').implement({
  description:
    'A message of the stream, or a page of the log. On a stream an empty one every 15 s carries the cursor forward.',
  fields: (t) => ({
    cursor: t.expose('cursor', { type: 'Cursor', description: says.cursor }),
    caughtUp: t.exposeBoolean('caughtUp', { description: says.caughtUp }),
    changes: t.field({
      type: [RunStatusChange],
      description: 'Changes, in order per run.',
      resolve: ({ changes }) => changes,
    }),
  }),
});

const after =
  'Cursor of the change log to resume after; absent starts now. A Last-Event-ID of the request wins over it.';

builder.subscriptionFields((t) => ({
  taskStatusChanged: t.field({
    type: TaskStatusChanges,
    description:
      'Changes of the status of tasks. Completes when all runs that the filter names are terminal. Needs READ.',
    args: {
      filter: t.arg({ type: TaskFilterInput, description: 'Which changes; absent is all.' }),
      after: t.arg({ type: 'Cursor', description: after }),
    },
    subscribe: (_, { filter, after: cursor }, context) => {
      const wanted = toTaskChangeFilter(filter);
      const from = context.lastEventId ?? cursor ?? null;
      return new ChangeStream(() => context.services.changeLog.taskChanges(wanted, from));
    },
    resolve: (changes) => changes,
  }),
  runStatusChanged: t.field({
    type: RunStatusChanges,
    description:
      'Changes of the status of runs. Completes when all runs that the filter names are terminal. Needs READ.',
    args: {
      filter: t.arg({ type: RunFilterInput, description: 'Which changes; absent is all.' }),
      after: t.arg({ type: 'Cursor', description: after }),
    },
    subscribe: (_, { filter, after: cursor }, context) => {
      const wanted = toRunChangeFilter(filter);
      const from = context.lastEventId ?? cursor ?? null;
      return new ChangeStream(() => context.services.changeLog.runChanges(wanted, from));
    },
    resolve: (changes) => changes,
  }),
}));

builder.queryField('changeLogCursor', (t) =>
  t.field({
    type: 'Cursor',
    description:
      'The position in the change log now. Read it before a question and subscribe after it, and nothing is missed. Needs READ.',
    resolve: (_, __, context) => context.services.changeLog.currentCursor(),
  }),
);
