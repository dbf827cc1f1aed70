import { setTimeout as delay } from 'node:timers/promises';
import { nanos } from '@nats-io/transport-node';
import { expect, test } from 'vitest';
import { natsTests, soon } from '../support/nats-tests.ts';

const nats = natsTests({ streams: [] });
const { startIngest, publish, allAcknowledged, events, incidents } = nats;

const detail = async (): Promise<string | undefined> =>
  (await nats.plane.rows<{ detail: string }>('select detail from runplane.ingest_incidents')).at(-1)?.detail;

/** Takes messages as another process that vanishes with them. */
async function takeAway(batch: number): Promise<void> {
  const consumer = await nats.broker.js.consumers.get('PIPELINE', 'runplane');
  const messages = await consumer.fetch({ max_messages: batch, expires: 1000 });
  for await (const _ of messages);
}

test('messages that age removed while nobody was there are a gap of just these, also when the consumer is gone too', async () => {
  await nats.broker.stream('PIPELINE', 2);
  const ingest = startIngest();
  await publish(3);
  await allAcknowledged();
  await ingest.stop();
  await publish(7);
  await expect
    .poll(async () => (await nats.broker.jsm.streams.info('PIPELINE')).state.messages, soon)
    .toBe(0);
  await publish(2);
  const again = startIngest();
  await expect
    .poll(incidents, soon)
    .toEqual([{ kind: 'GAP', from: 4, to: 10, eventId: null, isOver: false }]);
  await allAcknowledged();
  expect(await events()).toHaveLength(5);

  await again.stop();
  await publish(4);
  await nats.broker.jsm.consumers.delete('PIPELINE', 'runplane');
  await expect
    .poll(async () => (await nats.broker.jsm.streams.info('PIPELINE')).state.messages, soon)
    .toBe(0);
  startIngest();
  await expect.poll(incidents, soon).toMatchObject([
    { kind: 'GAP', from: 4, to: 10 },
    { kind: 'CONSUMER_MISSING', from: 13, isOver: true },
    { kind: 'GAP', from: 13, to: 16 },
  ]);
});

test('limits, purges and deletions of single messages make gaps of just what was not read', async () => {
  await nats.broker.jsm.streams.add({ name: 'PIPELINE', subjects: ['pipeline.>'], max_msgs: 5 });
  const ingest = startIngest({ maxDeliver: 2 });
  await publish(2);
  await allAcknowledged();
  await ingest.stop();
  // 3 to 7 fall out of the limit.
  await publish(10);
  await nats.broker.jsm.streams.deleteMessage('PIPELINE', 10);
  const again = startIngest({ maxDeliver: 2 });
  await expect.poll(incidents, soon).toMatchObject([
    { kind: 'GAP', from: 3, to: 7 },
    { kind: 'GAP', from: 10, to: 10 },
  ]);
  expect(await events()).toHaveLength(2 + 4);
  await again.stop();
  await publish(3);
  await nats.broker.jsm.streams.purge('PIPELINE');
  startIngest({ maxDeliver: 2 });
  await expect.poll(incidents, soon).toHaveLength(3);
  expect((await incidents()).at(-1)).toMatchObject({ kind: 'GAP', from: 13, to: 15 });
});

test('a message that the broker gives up is read by its number when the broker says so', async () => {
  await nats.broker.stream();
  const ingest = startIngest({ maxDeliver: 2 });
  await publish(1);
  await allAcknowledged();
  await ingest.stop();
  await publish(1);
  await takeAway(1);
  await delay(2100);
  await takeAway(1);
  startIngest({ maxDeliver: 2 });
  await expect.poll(events, soon).toHaveLength(2);
  const [, event] = await events();
  await expect
    .poll(incidents, soon)
    .toEqual([{ kind: 'MAX_DELIVER', from: 2, to: 2, eventId: event?.id, isOver: true }]);
  expect(await detail()).toMatch('It was delivered as often as it may be, in vain.');
});

test('a message that the broker gave up while nobody listened is found all the same', async () => {
  await nats.broker.stream();
  const ingest = startIngest({ maxDeliver: 2 });
  await publish(1);
  await allAcknowledged();
  await ingest.stop();
  await publish(1);
  for (let i = 0; i < 3; i++) {
    await takeAway(1);
    await delay(2100);
  }
  const waiting = async () => (await nats.broker.jsm.consumers.info('PIPELINE', 'runplane')).num_ack_pending;
  await expect.poll(waiting, soon).toBe(0);
  startIngest({ maxDeliver: 2 });
  await expect.poll(incidents, soon).toMatchObject([{ kind: 'MAX_DELIVER', from: 2, to: 2, isOver: true }]);
  expect(await events()).toHaveLength(2);
  expect(await detail()).toMatch('Its delivery ended without a word of the broker.');
});

test('a message that waits for half the age that the stream keeps it is warned of, until it is stored', async () => {
  await nats.broker.stream('PIPELINE', 8);
  const ingest = startIngest({ ackWaitSeconds: 30 });
  await publish(1);
  await allAcknowledged();
  await ingest.stop();
  // Another process has it, and takes long.
  await publish(1);
  const consumer = await nats.broker.js.consumers.get('PIPELINE', 'runplane');
  const held = await consumer.next();
  startIngest({ ackWaitSeconds: 30 });
  await expect
    .poll(incidents, soon)
    .toEqual([{ kind: 'AGE_WARNING', from: 2, to: 2, eventId: null, isOver: false }]);
  held?.nak();
  await expect.poll(incidents, soon).toMatchObject([{ kind: 'AGE_WARNING', isOver: true }]);
  expect(await events()).toHaveLength(2);
});

test('a stream is awaited; made again under its name it is another one, whose numbers mean other messages', async () => {
  const ingest = startIngest();
  await expect.poll(incidents, soon).toMatchObject([{ kind: 'STREAM_MISSING', isOver: false }]);
  expect(ingest.notReady()).toEqual(['nats: a stream is missing, ingestStreams says which']);
  await nats.broker.stream();
  await expect.poll(incidents, soon).toMatchObject([{ kind: 'STREAM_MISSING', isOver: true }]);
  await publish(2);
  await expect.poll(events, soon).toHaveLength(2);
  expect(ingest.notReady()).toEqual([]);
  const lastSequence = () => nats.plane.rows(`select last_sequence as last from runplane.ingest_streams`);
  await expect.poll(lastSequence, soon).toEqual([{ last: 2 }]);

  await nats.broker.jsm.streams.delete('PIPELINE');
  await nats.broker.jsm.streams.add({
    name: 'PIPELINE',
    subjects: ['pipeline.>'],
    duplicate_window: nanos(1_000_000_000),
  });
  await publish(3);
  await expect.poll(events, soon).toHaveLength(5);
  const gaps = async () => (await incidents()).filter(({ kind }) => kind === 'GAP');
  expect(await gaps()).toEqual([]);

  // Nobody is there when it goes with what was not read.
  await expect.poll(lastSequence, soon).toEqual([{ last: 3 }]);
  await nats.plane.rows(`update runplane.ingest_streams set handled = '{[1,2]}'`);
  await ingest.stop();
  await nats.broker.jsm.streams.delete('PIPELINE');
  await nats.broker.stream();
  startIngest();
  await expect.poll(gaps, soon).toMatchObject([{ from: 3, to: 3, isOver: false }]);
});

test('what a database that was restored does not have any more is read again, as far as the stream has it', async () => {
  await nats.broker.stream();
  const ingest = startIngest({ maxDeliver: 2 });
  await publish(8);
  await allAcknowledged();
  await ingest.stop();
  const [, , third] = await events();
  await nats.plane.rows(
    `with e as (delete from runplane.events where id > '${third?.id}' returning id),
          i as (delete from runplane.idempotency_records using e where object_id = e.id)
     update runplane.ingest_streams set handled = '{[1,3]}', delivered_sequence = 3, last_sequence = 3`,
  );
  await nats.broker.jsm.streams.purge('PIPELINE', { seq: 6 });
  startIngest({ maxDeliver: 2 });
  await expect.poll(events, soon).toHaveLength(3 + 3);
  await expect.poll(incidents, soon).toMatchObject([
    { kind: 'GAP', from: 4, to: 5 },
    { kind: 'MAX_DELIVER', from: 6, to: 8, isOver: true },
  ]);
});
