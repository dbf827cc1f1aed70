import { fromPublicId } from '../domain/ids.ts';
import { notFound } from '../domain/problems.ts';
import type { Actor, TaskActionOutcome } from '../operator/types.ts';
import {
  BulkResult,
  bulkArgs,
  priority,
  RunActionResult,
  reason,
  TaskActionResult,
} from './action-results.ts';
import { builder } from './builder.ts';
import type { GraphQLContext } from './context.ts';
import { RunFilterInput, TaskFilterInput, toRunFilter, toTaskFilter } from './filters.ts';
import { change } from './save.ts';

const taskId = { required: true, description: 'The task.' } as const;

/** An action on the task with a public id, as the caller. */
const onTask = (
  context: GraphQLContext,
  publicId: string,
  action: (taskId: string, actor: Actor) => Promise<TaskActionOutcome>,
) =>
  change(context, 'OPERATE', async (actor) => {
    const id = fromPublicId('task', publicId);
    return id === null ? notFound('task', publicId) : action(id, actor);
  });

builder.mutationFields((t) => ({
  cancelTask: t.field({
    type: TaskActionResult,
    nullable: true,
    description:
      'Cancels a task, protected or not: at once while it waits; while it is executed its worker is asked to stop and has a grace time (RUNPLANE_CANCEL_GRACE_SECONDS, 30 s by default). Needs OPERATE.',
    args: { taskId: t.arg.id(taskId), reason: t.arg.string(reason) },
    resolve: (_, args, context) =>
      onTask(context, args.taskId, (id, actor) =>
        context.services.actions.cancelTask({ taskId: id, reason: args.reason }, actor),
      ),
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
  runTaskNow: t.field({
    type: TaskActionResult,
    nullable: true,
    description:
      'Makes a task ready at once that is scheduled or backs off, with a priority 100 above what it had. It keeps its place behind its serial key. IllegalState for every other task. Needs OPERATE.',
    args: { taskId: t.arg.id(taskId) },
    resolve: (_, args, context) =>
      onTask(context, args.taskId, (id, actor) => context.services.actions.runTaskNow({ taskId: id }, actor)),
  }),
  setTaskPriority: t.field({
    type: TaskActionResult,
    nullable: true,
    description:
      'Gives a task that is not over another priority: a ready one takes its new place at once, others when they become ready, one that is executed for its retries. IllegalState for a terminal one. Needs OPERATE.',
    args: {
      taskId: t.arg.id(taskId),
      priority: t.arg.int({ required: true, description: '-1000 to 1000, higher first.' }),
    },
    resolve: (_, args, context) =>
      onTask(context, args.taskId, (id, actor) =>
        context.services.actions.setTaskPriority({ taskId: id, priority: args.priority }, actor),
      ),
  }),
  deleteTask: t.field({
    type: TaskActionResult,
    nullable: true,
    description:
      'Hides a terminal task from everything that lists, counts or finds tasks, with its attempts; erases its input, output, checkpoint, error messages, raw usage and the metadata of what it produced, and its dead letter. Usage and cost stay. It cannot be undone. IllegalState for a task that is not over. Needs OPERATE.',
    args: { taskId: t.arg.id(taskId), reason: t.arg.string(reason) },
    resolve: (_, args, context) =>
      onTask(context, args.taskId, (id, actor) =>
        context.services.actions.deleteTask({ taskId: id, reason: args.reason }, actor),
      ),
  }),
  cancelTasks: t.field({
    type: BulkResult,
    nullable: true,
    description:
      'Cancels the tasks that match, but the protected ones. An empty filter is refused. Needs OPERATE.',
    args: {
      filter: t.arg({ type: TaskFilterInput, required: true, description: 'Which tasks.' }),
      reason: t.arg.string(reason),
      ...bulkArgs,
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
      ...bulkArgs,
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
    args: { taskId: t.arg.id(taskId), priority: t.arg.int(priority) },
    resolve: (_, args, context) =>
      onTask(context, args.taskId, (id, actor) =>
        context.services.actions.retryTask({ taskId: id, priority: args.priority }, actor),
      ),
  }),
  retryTasks: t.field({
    type: BulkResult,
    nullable: true,
    description:
      'Tries the failed and cancelled tasks that match again. An empty filter is refused. Needs OPERATE.',
    args: {
      filter: t.arg({ type: TaskFilterInput, required: true, description: 'Which tasks.' }),
      priority: t.arg.int(priority),
      ...bulkArgs,
    },
    resolve: (_, { filter, ...rest }, context) =>
      change(context, 'OPERATE', (actor) =>
        context.services.actions.retryTasks({ ...rest, filter: toTaskFilter(filter) }, actor),
      ),
  }),
}));
