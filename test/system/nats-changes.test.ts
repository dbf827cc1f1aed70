import { cpSync, rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { natsTests, soon } from '../support/nats-tests.ts';

const nats = natsTests();
const { startIngest, publish, allAcknowledged, consumer, events, incidents } = nats;

test('while the database can only be read nothing is fetched, and no delivery is used up', async () => {
  const { db } = nats.plane.database;
  const ask = (text: string) => db.inTransaction('begin read write', (tx) => tx.query({ text }));
  const [{ name } = { name: '' }] = await nats.plane.rows<{ name: string }>(
    'select current_database() as name',
  );
  const logged: string[] = [];
  startIngest({ maxDeliver: 3 }, { warn: (_, message) => logged.push(message) });
  await publish(1);
  await allAcknowledged();
  await ask(`alter database "${name}" set default_transaction_read_only = on`);
  await ask(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`,
  );
  await publish(3);
  await expect.poll(() => logged, soon).toContain('the database does not answer: nothing is fetched');
  const { consumer_seq } = (await consumer()).delivered;
  await new Promise((resolve) => setTimeout(resolve, 6000));
  expect((await consumer()).delivered.consumer_seq).toBe(consumer_seq);
  await ask(`alter database "${name}" reset default_transaction_read_only`);
  await ask(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`,
  );
  await allAcknowledged();
  expect(await events()).toHaveLength(4);
  expect(await incidents()).toEqual([]);
});

test('a replica that another one watches for notices that the stream is another one, by what it may not mark', async () => {
  startIngest();
  await publish(1);
  await allAcknowledged();
  await nats.plane.rows(
    `update runplane.ingest_streams set watcher = gen_random_uuid(), watched_until = runplane.clock() + interval '1 hour'`,
  );
  await nats.plane.database.db.inTransaction('begin', async (tx) => {
    await tx.query({ text: 'lock table runplane.events in exclusive mode' });
    await publish(1);
    await nats.plane.untilBlocked(1);
    await nats.broker.jsm.streams.delete('PIPELINE');
    await nats.broker.stream();
    await nats.broker.jsm.consumers.add('PIPELINE', {
      durable_name: 'runplane',
      ack_policy: 'explicit',
      ack_wait: 2e9,
      max_deliver: 10,
    });
    const { created } = await nats.broker.jsm.streams.info('PIPELINE');
    // So does the replica that watches.
    await nats.plane.rows(
      `update runplane.ingest_streams set stream_created = '${created}', handled = '{}', delivered_sequence = 0, last_sequence = null`,
    );
    await publish(2);
  });
  await allAcknowledged();
  const handled = () => nats.plane.rows('select handled::text from runplane.ingest_streams');
  await expect.poll(handled, soon).toEqual([{ handled: '{[1,3)}' }]);
  expect(await events()).toHaveLength(4);
  expect(await incidents()).toEqual([]);
});

test('what a crash took from the end of a stream is not missed, nor what gets its numbers when the consumer is gone too', async () => {
  const first = startIngest();
  await publish(2);
  await allAcknowledged();
  await first.stop();
  const { store } = nats.broker.server;
  const copy = `${store}-copy`;
  await nats.broker.server.end('SIGTERM');
  cpSync(store, copy, { recursive: true });
  await nats.broker.restart();
  const second = startIngest();
  await publish(5);
  await allAcknowledged();
  await second.stop();
  // It was not looked at after these were handled.
  await nats.plane.rows('update runplane.ingest_streams set last_sequence = 2');
  await nats.broker.server.end('SIGKILL');
  rmSync(store, { recursive: true });
  cpSync(copy, store, { recursive: true });
  await nats.broker.restart();
  await nats.broker.jsm.consumers.delete('PIPELINE', 'runplane');
  await publish(3);
  startIngest();
  await expect.poll(events, soon).toHaveLength(2 + 5 + 3);
  await allAcknowledged();
  expect(await incidents()).toMatchObject([{ kind: 'CONSUMER_MISSING', from: 1 }]);
});

test('a consumer that delivers no content is refused, and loses nothing', async () => {
  await nats.broker.jsm.consumers.add('PIPELINE', {
    durable_name: 'runplane',
    ack_policy: 'explicit',
    headers_only: true,
  });
  const logged: object[] = [];
  startIngest({}, { warn: (fields) => logged.push(fields) });
  await publish(1);
  const refusal = { error: expect.stringContaining('with their content') };
  await expect.poll(() => logged, soon).toContainEqual(expect.objectContaining(refusal));
  expect(await events()).toEqual([]);
  await nats.broker.jsm.consumers.delete('PIPELINE', 'runplane');
  await expect.poll(events, soon).toHaveLength(1);
});
