import { fromPublicId } from '../domain/ids.ts';
import { notFound } from '../domain/problems.ts';
import { BulkResult, bulkArgs, priority, TaskActionResult } from './action-results.ts';
import { builder } from './builder.ts';
import { DeadLetterFilterInput, toDeadLetterFilter } from './filters.ts';
import { change } from './save.ts';

const filter = { type: DeadLetterFilterInput, required: true, description: 'Which dead letters.' } as const;

builder.mutationFields((t) => ({
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
      filter: t.arg(filter),
      priority: t.arg.int(priority),
      ...bulkArgs,
    },
    resolve: (_, { filter, ...rest }, context) =>
      change(context, 'OPERATE', (actor) =>
        context.services.actions.replayDeadLetters({ ...rest, filter: toDeadLetterFilter(filter) }, actor),
      ),
  }),
  purgeDeadLetters: t.field({
    type: BulkResult,
    nullable: true,
    description:
      'Deletes the dead letters that match, for good; their tasks stay FAILED and can still be retried. An empty filter is refused. Needs OPERATE.',
    args: {
      filter: t.arg(filter),
      reason: t.arg.string({
        required: true,
        description: 'Why, for the audit log; not blank, at most 8,192 bytes.',
      }),
      ...bulkArgs,
    },
    resolve: (_, { filter: given, ...rest }, context) =>
      change(context, 'OPERATE', (actor) =>
        context.services.actions.purgeDeadLetters({ ...rest, filter: toDeadLetterFilter(given) }, actor),
      ),
  }),
}));
