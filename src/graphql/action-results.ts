import { toPublicId } from '../domain/ids.ts';
import type { BulkSuccess, RunActionSuccess, TaskActionSuccess } from '../operator/types.ts';
import { builder } from './builder.ts';
import { RunStatusEnum, TaskStatusEnum } from './enums.ts';
import { ForbiddenRef, IllegalStateRef, InvalidInputRef, NotFoundRef } from './problems.ts';
import { RunRef, TaskRef } from './refs.ts';

const TaskActionSuccessRef = builder.objectRef<TaskActionSuccess>('TaskActionSuccess').implement({
  description: 'The action was done, or had been done before.',
  fields: (t) => ({
    taskId: t.id({ description: 'The task.', resolve: ({ taskId }) => toPublicId('task', taskId) }),
    taskStatus: t.expose('taskStatus', { type: TaskStatusEnum, description: 'Its status after the action.' }),
    task: t.field({
      type: TaskRef,
      nullable: true,
      description: 'The task as it is now. Needs READ, else null.',
      resolve: ({ taskId }, _, context) => context.loaders.task(taskId),
    }),
  }),
});
export const TaskActionResult = builder.unionType('TaskActionResult', {
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
      resolve: ({ runId }, _, context) => context.loaders.run(runId),
    }),
  }),
});
export const RunActionResult = builder.unionType('RunActionResult', {
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
export const BulkResult = builder.unionType('BulkResult', {
  description: 'What became of an action by filter.',
  types: [BulkSuccessRef, InvalidInputRef, ForbiddenRef],
  resolveType: ({ kind }) => kind,
});

export const reason = { description: 'Why, for the audit log and the change log; at most 8,192 bytes.' };
export const priority = {
  description: '-1000 to 1000; default 100 above what it had, so that an operator goes first.',
};
/** Of every action by filter. */
export const bulkArgs = builder.args((t) => ({
  dryRun: t.boolean({ defaultValue: false, description: 'Only count what would be changed.' }),
  limit: t.int({ description: 'Most objects of one call, 1 to 10,000; default 10,000.' }),
}));
