import { toPublicId } from '../domain/ids.ts';
import type { IngestStreamRow } from '../read/ingest.ts';
import { builder } from './builder.ts';
import { IngestIncidentConnection, pageArgs } from './connections.ts';
import { EventRef, IngestIncidentRef } from './refs.ts';

IngestIncidentRef.implement({
  description: 'What went wrong with a stream: messages that were lost, refused or delivered in vain.',
  fields: (t) => ({
    id: t.id({ description: 'Its identity, inc_….', resolve: ({ id }) => toPublicId('inc', id) }),
    at: t.expose('at', { type: 'DateTime', description: 'When it was noticed.' }),
    kind: t.exposeString('kind', {
      description:
        'GAP: messages were removed before they were read. POISON: a message is no event and is kept as a rejected one. CONFLICT: likewise, as its key was used with another payload. MAX_DELIVER: a message was delivered in vain as often as it may be, and was read by its number. STREAM_MISSING, CONSUMER_MISSING: the broker does not have it. AGE_WARNING: messages are about to be removed before they are read.',
    }),
    fromSequence: t.expose('fromSequence', {
      type: 'SafeInt',
      nullable: true,
      description: 'The first message concerned.',
    }),
    toSequence: t.expose('toSequence', {
      type: 'SafeInt',
      nullable: true,
      description: 'The last message concerned.',
    }),
    detail: t.exposeString('detail', { description: 'What happened, in words.' }),
    event: t.field({
      type: EventRef,
      nullable: true,
      description: 'The event that was stored of the message.',
      resolve: ({ eventId }, _, { loaders }) => (eventId === null ? null : loaders.event(eventId)),
    }),
    resolvedAt: t.expose('resolvedAt', {
      type: 'DateTime',
      nullable: true,
      description:
        'When it was over; null while it lasts: a gap for ever, a rejected event until its replay.',
    }),
  }),
});

const IngestStreamRef = builder.objectRef<IngestStreamRow>('IngestStream').implement({
  description:
    'A NATS JetStream stream that is consumed: settings as they are on the server, and how far behind we are. Looked at every 2 s.',
  fields: (t) => {
    const count = (
      name: 'pending' | 'unacknowledged' | 'redelivered' | 'lastSequence',
      description: string,
    ) => t.expose(name, { type: 'SafeInt', nullable: true, description });
    return {
      stream: t.exposeString('stream', { description: 'Name of the stream.' }),
      consumer: t.exposeString('consumer', { description: 'Name of the durable consumer.' }),
      subjects: t.exposeStringList('subjects', { description: 'Subjects that the stream takes.' }),
      ackWaitSeconds: t.exposeFloat('ackWaitSeconds', {
        description: 'A message that is not acknowledged for so long is delivered again.',
      }),
      maxDeliver: t.exposeInt('maxDeliver', {
        description: 'How often a message is delivered at most; -1 is without an end.',
      }),
      maxAgeSeconds: t.exposeFloat('maxAgeSeconds', {
        nullable: true,
        description: 'How long the stream keeps messages, in seconds; null is for ever.',
      }),
      connected: t.exposeBoolean('connected', {
        description: 'Whether a process took part in it within the last 10 s.',
      }),
      pending: count('pending', 'Messages that wait to be delivered.'),
      unacknowledged: count('unacknowledged', 'Messages that were delivered and are not acknowledged.'),
      redelivered: count('redelivered', 'Of these, the ones that were delivered before.'),
      oldestPendingAgeSeconds: t.exposeFloat('oldestPendingAgeSeconds', {
        nullable: true,
        description: 'Age of the oldest message that is not stored yet, in seconds; null: there is none.',
      }),
      lastSequence: count('lastSequence', 'Number of the newest message of the stream.'),
      incidents: t.field({
        type: IngestIncidentConnection,
        nullable: true,
        description: 'What went wrong, newest first.',
        args: pageArgs,
        resolve: (stream, page, { services }) => services.read.ingest.incidents(stream, page),
      }),
    };
  },
});

builder.queryField('ingestStreams', (t) =>
  t.field({
    type: [IngestStreamRef],
    nullable: true,
    description:
      'The streams that events are consumed from, beside those that come by GraphQL (docs/nats.md). Needs READ.',
    resolve: (_, __, { services }) => services.read.ingest.streams(),
  }),
);
