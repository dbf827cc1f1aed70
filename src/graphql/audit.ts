import { inNfc } from '../domain/text.ts';
import { builder } from './builder.ts';
import { AuditEntryConnection, pageArgs } from './connections.ts';
import { AuditEntryRef, idOf, Node } from './refs.ts';
import { ifPayload } from './scopes.ts';

AuditEntryRef.implement({
  description: 'Who changed what; written together with the change, never changed itself.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('audit')),
    at: t.expose('at', { type: 'DateTime', description: 'When.' }),
    actor: t.exposeString('actor', { description: "Who: the credential's name." }),
    action: t.exposeString('action', {
      description: 'What was done, such as job.save or task.cancel; docs/operating.md lists all.',
    }),
    target: t.exposeString('target', { description: 'To what: a name or an id.' }),
    before: t.field({
      type: 'JSON',
      nullable: true,
      description: 'How it was. Needs PAYLOAD_READ, else null.',
      resolve: (entry, _, context) => ifPayload(context, () => entry.before),
    }),
    after: t.field({
      type: 'JSON',
      nullable: true,
      description: 'How it is since. Needs PAYLOAD_READ, else null.',
      resolve: (entry, _, context) => ifPayload(context, () => entry.after),
    }),
    reason: t.exposeString('reason', { nullable: true, description: 'Why, where someone said it.' }),
    requestId: t.exposeString('requestId', { nullable: true, description: 'The request that did it.' }),
  }),
});

const AuditFilterInput = builder.inputType('AuditFilter', {
  description:
    'Which entries. Fields are AND, entries of a list OR. Null is absent; an empty list matches nothing.',
  fields: (t) => ({
    actors: t.stringList({ description: "Who: the credential's name." }),
    actions: t.stringList({
      description:
        'What was done, as noun.verb such as agent.save or task.cancel, with .bulk behind it when it was done by a filter; docs/operating.md lists all of them.',
    }),
    targets: t.stringList({ description: 'To what: a name or an id; filter for an action by a filter.' }),
    after: t.field({ type: 'DateTime', description: 'At this time or later.' }),
    before: t.field({ type: 'DateTime', description: 'Before this time.' }),
  }),
});

builder.queryField('auditLog', (t) =>
  t.field({
    type: AuditEntryConnection,
    nullable: true,
    description: 'Changes that operators made, newest first. Needs READ.',
    args: {
      ...pageArgs,
      filter: t.arg({ type: AuditFilterInput, description: 'Which of them; absent is all.' }),
    },
    resolve: (_, { filter, ...page }, context) => context.services.read.audit.list(inNfc(filter) ?? {}, page),
  }),
);
