import { cpSync, rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Broker, eventsOf, incidentsOf } from '../support/broker.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
let broker: Broker;
beforeEach(async () => {
  plane = await ControlPlane.start();
  broker = await Broker.start();
  await broker.stream();
});
afterEach(async () => {
  await broker.stop();
  await plane.stop();
});

const publish = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await broker.publish('pipeline.x', { i });
};
const consumer = () => broker.jsm.consumers.info('PIPELINE', 'runplane');
const soon = { timeout: 25_000 };

test('while the database can only be read nothing is fetched, and no delivery is used up', async () => {
  const { db } = plane.database;
  const ask = (text: string) => db.inTransaction('begin read write', (tx) => tx.query({ text }));
  const [{ name } = { name: '' }] = await plane.rows<{ name: string }>('select current_database() as name');
  const logged: string[] = [];
  broker.ingest(plane, { maxDeliver: 3 }, { warn: (_, message) => logged.push(message) });
  await publish(1);
  await broker.allAcknowledged();
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
  await broker.allAcknowledged();
  expect(await eventsOf(plane)).toHaveLength(4);
  expect(await incidentsOf(plane)).toEqual([]);
});

test('a replica that another one watches for notices that the stream is another one, by what it may not mark', async () => {
  broker.ingest(plane);
  await publish(1);
  await broker.allAcknowledged();
  await plane.rows(
    `update runplane.ingest_streams set watcher = gen_random_uuid(), watched_until = runplane.clock() + interval '1 hour'`,
  );
  await plane.database.db.inTransaction('begin', async (tx) => {
    await tx.query({ text: 'lock table runplane.events in exclusive mode' });
    await publish(1);
    await plane.untilBlocked(1);
    await broker.jsm.streams.delete('PIPELINE');
    await broker.stream();
    await broker.jsm.consumers.add('PIPELINE', {
      durable_name: 'runplane',
      ack_policy: 'explicit',
      ack_wait: 2e9,
      max_deliver: 10,
    });
    const { created } = await broker.jsm.streams.info('PIPELINE');
    // So does the replica that watches.
    await plane.rows(
      `update runplane.ingest_streams set stream_created = '${created}', handled = '{}', delivered_sequence = 0, last_sequence = null`,
    );
    await publish(2);
  });
  await broker.allAcknowledged();
  const handled = () => plane.rows('select handled::text from runplane.ingest_streams');
  await expect.poll(handled, soon).toEqual([{ handled: '{[1,3)}' }]);
  expect(await eventsOf(plane)).toHaveLength(4);
  expect(await incidentsOf(plane)).toEqual([]);
});

test('what a crash took from the end of a stream is not missed, nor what gets its numbers when the consumer is gone too', async () => {
  const first = broker.ingest(plane);
  await publish(2);
  await broker.allAcknowledged();
  await first.stop();
  const { store } = broker.server;
  const copy = `${store}-copy`;
  await broker.server.end('SIGTERM');
  cpSync(store, copy, { recursive: true });
  await broker.restart();
  const second = broker.ingest(plane);
  await publish(5);
  await broker.allAcknowledged();
  await second.stop();
  // It was not looked at after these were handled.
  await plane.rows('update runplane.ingest_streams set last_sequence = 2');
  await broker.server.end('SIGKILL');
  rmSync(store, { recursive: true });
  cpSync(copy, store, { recursive: true });
  await broker.restart();
  await broker.jsm.consumers.delete('PIPELINE', 'runplane');
  await publish(3);
  broker.ingest(plane);
  await expect.poll(() => eventsOf(plane), soon).toHaveLength(2 + 5 + 3);
  await broker.allAcknowledged();
  expect(await incidentsOf(plane)).toMatchObject([{ kind: 'CONSUMER_MISSING', from: 1 }]);
});

test('a consumer that delivers no content is refused, and loses nothing', async () => {
  await broker.jsm.consumers.add('PIPELINE', {
    durable_name: 'runplane',
    ack_policy: 'explicit',
    headers_only: true,
  });
  const logged: object[] = [];
  broker.ingest(plane, {}, { warn: (fields) => logged.push(fields) });
  await publish(1);
  const refusal = { error: expect.stringContaining('with their content') };
  await expect.poll(() => logged, soon).toContainEqual(expect.objectContaining(refusal));
  expect(await eventsOf(plane)).toEqual([]);
  await broker.jsm.consumers.delete('PIPELINE', 'runplane');
  await expect.poll(() => eventsOf(plane), soon).toHaveLength(1);
});
