import type { Page } from '../read/page.ts';
import { builder } from './builder.ts';
import { IngestIncidentConnection, pageArgs } from './connections.ts';
import { EventRef, type IngestIncident, IngestIncidentRef } from './refs.ts';

/** Settings as they are on the broker, and how far behind this server is. */
interface IngestStream {
  stream: string;
  consumer: string;
  subjects: string[];
  ackWaitSeconds: number;
  maxDeliver: number;
  maxAgeSeconds: number | null;
  connected: boolean;
  pending: number | null;
  unacknowledged: number | null;
  redelivered: number | null;
  oldestPendingAgeSeconds: number | null;
  lastSequence: number | null;
  incidents: Page<IngestIncident>;
}

IngestIncidentRef.implement({
  description: 'What went wrong with a stream: messages that were lost, refused or delivered in vain.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Its identity.' }),
    at: t.expose('at', { type: 'DateTime', description: 'When it was noticed.' }),
    kind: t.exposeString('kind', {
      description:
        'GAP: messages were removed before they were read. POISON, MAX_DELIVER, CONFLICT, STREAM_MISSING, CONSUMER_MISSING, AGE_WARNING likewise.',
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
      description: 'When it was over; null while it lasts.',
    }),
  }),
});

const IngestStreamRef = builder.objectRef<IngestStream>('IngestStream').implement({
  description:
    'A NATS JetStream stream that is consumed: settings as they are on the server, and how far behind we are.',
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
      maxDeliver: t.exposeInt('maxDeliver', { description: 'How often a message is delivered at most.' }),
      maxAgeSeconds: t.exposeFloat('maxAgeSeconds', {
        nullable: true,
        description: 'How long the stream keeps messages, in seconds; null is for ever.',
      }),
      connected: t.exposeBoolean('connected', { description: 'Whether the consumer is connected now.' }),
      pending: count('pending', 'Messages that wait to be delivered.'),
      unacknowledged: count('unacknowledged', 'Messages that were delivered and are not acknowledged.'),
      redelivered: count('redelivered', 'Of these, the ones that were delivered before.'),
      oldestPendingAgeSeconds: t.exposeFloat('oldestPendingAgeSeconds', {
        nullable: true,
        description: 'Age of the oldest message that waits, in seconds.',
      }),
      lastSequence: count('lastSequence', 'Number of the newest message of the stream.'),
      incidents: t.field({
        type: IngestIncidentConnection,
        nullable: true,
        description: 'What went wrong, newest first.',
        args: pageArgs,
        resolve: ({ incidents }) => incidents,
      }),
    };
  },
});

builder.queryField('ingestStreams', (t) =>
  t.field({
    type: [IngestStreamRef],
    nullable: true,
    description:
      'The streams that events are consumed from. Events come in by GraphQL alone in this version, so there are none. Needs READ.',
    resolve: () => [],
  }),
);
