import { inNfc } from '../domain/text.ts';
import { builder } from './builder.ts';
import {
  AttemptConnection,
  EventConnection,
  KnowledgeRecordConnection,
  MaterializationConnection,
  pageArgs,
  RunConnection,
  TaskConnection,
} from './connections.ts';

const TraceRef = builder.objectRef<{ correlationId: string }>('Trace').implement({
  description: 'Everything that carries one correlation id, each list oldest first.',
  fields: (t) => ({
    correlationId: t.exposeString('correlationId', { description: 'The correlation id.' }),
    events: t.field({
      type: EventConnection,
      nullable: true,
      description: 'Its events.',
      args: pageArgs,
      resolve: ({ correlationId }, page, { services }) =>
        services.read.events.ofCorrelation(correlationId, page),
    }),
    runs: t.field({
      type: RunConnection,
      nullable: true,
      description: 'Its runs.',
      args: pageArgs,
      resolve: ({ correlationId }, page, { services }) =>
        services.read.runs.ofCorrelation(correlationId, page),
    }),
    tasks: t.field({
      type: TaskConnection,
      nullable: true,
      description: 'The tasks of its runs.',
      args: pageArgs,
      resolve: ({ correlationId }, page, { services }) =>
        services.read.tasks.ofCorrelation(correlationId, page),
    }),
    attempts: t.field({
      type: AttemptConnection,
      nullable: true,
      description: 'The attempts of its tasks.',
      args: pageArgs,
      resolve: ({ correlationId }, page, { services }) =>
        services.read.attempts.ofCorrelation(correlationId, page),
    }),
    materializations: t.field({
      type: MaterializationConnection,
      nullable: true,
      description: 'What was produced.',
      args: pageArgs,
      resolve: ({ correlationId }, page, { services }) =>
        services.read.materializations.ofCorrelation(correlationId, page),
    }),
    knowledgeRecords: t.field({
      type: KnowledgeRecordConnection,
      nullable: true,
      description: 'Rows of the built-in knowledge pipeline.',
      args: pageArgs,
      resolve: ({ correlationId }, page, { services }) =>
        services.read.knowledge.ofCorrelation(correlationId, page),
    }),
  }),
});

builder.queryField('trace', (t) =>
  t.field({
    type: TraceRef,
    nullable: true,
    description: 'Everything that carries a correlation id, in one round trip. Needs READ.',
    args: { correlationId: t.arg.string({ required: true, description: 'The correlation id.' }) },
    resolve: (_, { correlationId }) => ({ correlationId: inNfc(correlationId) }),
  }),
);
