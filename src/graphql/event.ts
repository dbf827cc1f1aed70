import { fromPublicId } from '../domain/ids.ts';
import { inNfc } from '../domain/text.ts';
import type { RouteRefusal } from '../intake/types.ts';
import type { EventRow } from '../read/events.ts';
import { builder } from './builder.ts';
import { EventConnection, pageArgs, RunConnection } from './connections.ts';
import { EventSourceEnum } from './enums.ts';
import { ConfigErrorRef } from './problems.ts';
import { EventRef, idOf, Node } from './refs.ts';
import { ifPayload } from './scopes.ts';

export const RouteRefusalRef = builder.objectRef<RouteRefusal>('RouteRefusal').implement({
  description: 'A matching route that did not launch, and why.',
  fields: (t) => ({
    route: t.exposeString('route', { description: 'Name of the route.' }),
    message: t.exposeString('message', { description: 'Why it did not launch.' }),
    errors: t.field({
      type: [ConfigErrorRef],
      description: "Faults of the config that it gave against the job's schema.",
      resolve: ({ errors }) => errors,
    }),
  }),
});

const EventRejectionRef = builder
  .objectRef<NonNullable<EventRow['rejection']> & { eventId: string }>('EventRejection')
  .implement({
    description: 'Why a message was stored but not accepted.',
    fields: (t) => ({
      code: t.exposeString('code', { description: 'The reason in short.' }),
      message: t.string({
        nullable: true,
        description: 'The reason in words. Needs PAYLOAD_READ, else null.',
        resolve: ({ message }, _, context) => ifPayload(context, () => message),
      }),
      bytes: t.int({
        nullable: true,
        description: 'How long the message was, in bytes.',
        resolve: ({ bytes }) => bytes,
      }),
      raw: t.string({
        nullable: true,
        description: 'The message as it came, its first 64 KiB, in base64. Needs PAYLOAD_READ, else null.',
        resolve: async ({ eventId }, _, context) =>
          (await ifPayload(context, () => context.loaders.eventPayload(eventId)))?.raw?.toString('base64'),
      }),
      at: t.field({
        type: 'DateTime',
        description: 'When it was refused.',
        resolve: ({ at }) => new Date(at),
      }),
    }),
  });

EventRef.implement({
  description: 'A message on a topic, stored once by its idempotency key.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('evt')),
    topic: t.exposeString('topic', { description: 'Tokens split by dots.' }),
    idempotencyKey: t.exposeString('idempotencyKey', {
      nullable: true,
      description: 'Its key, unique per topic.',
    }),
    correlationId: t.exposeString('correlationId', {
      description: 'Ties together everything that it caused.',
    }),
    source: t.field({
      type: EventSourceEnum,
      description: 'How it came in.',
      resolve: ({ source }) => source,
    }),
    payload: t.field({
      type: 'JSON',
      nullable: true,
      description: 'What it says. Needs PAYLOAD_READ, else null.',
      resolve: async (event, _, context) =>
        (await ifPayload(context, () => context.loaders.eventPayload(event.id)))?.payload,
    }),
    receivedAt: t.expose('receivedAt', { type: 'DateTime', description: 'When it was stored.' }),
    rejection: t.field({
      type: EventRejectionRef,
      nullable: true,
      description:
        'Set when the message could not be accepted: it is kept and visible, launched nothing, and can be replayed.',
      resolve: ({ id, rejection }) => rejection && { ...rejection, eventId: id },
    }),
    refusals: t.field({
      type: [RouteRefusalRef],
      description: 'Matching routes that did not launch, and why.',
      resolve: ({ refusals }) => refusals,
    }),
    runs: t.field({
      type: RunConnection,
      nullable: true,
      description: 'The runs that it launched.',
      args: pageArgs,
      resolve: (event, page, { loaders }) => loaders.eventRuns(event.id, page),
    }),
  }),
});

const EventFilterInput = builder.inputType('EventFilter', {
  description:
    'Which events. Fields are AND, entries of a list OR. Null is absent; an empty list matches nothing.',
  fields: (t) => ({
    topics: t.stringList({ description: 'Topics, in full.' }),
    correlationId: t.string({ description: 'The correlation id.' }),
    sources: t.field({ type: [EventSourceEnum], description: 'How they came in.' }),
    rejected: t.boolean({ description: 'Only those that were refused, or only those that were not.' }),
    receivedAfter: t.field({ type: 'DateTime', description: 'Received at this time or later.' }),
    receivedBefore: t.field({ type: 'DateTime', description: 'Received before this time.' }),
  }),
});

builder.queryFields((t) => ({
  event: t.field({
    type: EventRef,
    nullable: true,
    description: 'An event by its id; null when there is none. Needs READ.',
    args: { id: t.arg.id({ required: true, description: 'evt_…' }) },
    resolve: (_, { id }, context) => {
      const uuid = fromPublicId('evt', id);
      return uuid === null ? null : context.loaders.event(uuid);
    },
  }),
  events: t.field({
    type: EventConnection,
    nullable: true,
    description: 'Events, newest first. Needs READ.',
    args: {
      ...pageArgs,
      filter: t.arg({ type: EventFilterInput, description: 'Which events; absent is all.' }),
    },
    resolve: (_, { filter, ...page }, context) =>
      context.services.read.events.list(inNfc(filter) ?? {}, page),
  }),
}));
