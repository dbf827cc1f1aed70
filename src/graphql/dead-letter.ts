import { builder } from './builder.ts';
import { DeadLetterConnection, pageArgs } from './connections.ts';
import { DeadLetterFilterInput, toDeadLetterFilter } from './filters.ts';
import { AgentRef, DeadLetterRef, idOf, Node, TaskRef } from './refs.ts';
import { ExecutionErrorRef } from './values.ts';

DeadLetterRef.implement({
  description: 'What a task left when it failed for good, kept for replay.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('dlq')),
    task: t.field({
      type: TaskRef,
      nullable: true,
      description: 'The task.',
      resolve: ({ taskId }, _, { loaders }) => loaders.task(taskId),
    }),
    agent: t.field({
      type: AgentRef,
      description: 'Who executed it.',
      resolve: async (letter, _, { loaders }) => {
        const agent = await loaders.agent(letter.agentId);
        if (!agent) throw new Error('The agent of a dead letter is gone.');
        return agent;
      },
    }),
    scope: t.exposeString('scope', {
      description:
        "What the failure concerns, from the task's labels or input: knowledge_base, knowledge, tenant or unknown.",
    }),
    scopeId: t.exposeString('scopeId', { nullable: true, description: 'Which one of them.' }),
    lastError: t.field({
      type: ExecutionErrorRef,
      description: 'Why it failed the last time.',
      resolve: ({ errorCode, errorKind, errorMessage }) => ({
        code: errorCode,
        kind: errorKind,
        retryable: errorKind !== 'PERMANENT',
        message: errorMessage,
      }),
    }),
    failCount: t.exposeInt('failCount', { description: 'How often it failed for good.' }),
    failedAt: t.expose('failedAt', { type: 'DateTime', description: 'When it failed the last time.' }),
    replayedAt: t.expose('replayedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was replayed since.',
    }),
  }),
});

builder.queryField('deadLetters', (t) =>
  t.field({
    type: DeadLetterConnection,
    nullable: true,
    description: 'Dead letters, newest first. Needs READ.',
    args: {
      ...pageArgs,
      filter: t.arg({ type: DeadLetterFilterInput, description: 'Which of them; absent is all.' }),
    },
    resolve: (_, { filter, ...page }, context) =>
      context.services.read.deadLetters.list(toDeadLetterFilter(filter), page),
  }),
);
