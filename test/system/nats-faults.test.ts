import { cpSync, rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { migrate } from '../../src/db/migrate.ts';
import { seedRegistry } from '../../src/operator/seed-registry.ts';
import { eventsOf, hearing, incidentsOf } from '../support/broker.ts';
import { ControlPlane, quiet } from '../support/control-plane.ts';
import { openDatabase } from '../support/database.ts';
import { startDebianPostgres } from '../support/debian-postgres.ts';
import { natsTests, soon } from '../support/nats-tests.ts';

const nats = natsTests();
const { startIngest, publish, allAcknowledged, consumer, events, incidents } = nats;
const notConnected = 'nats: not connected, which is tried again; the log says why';

test('a server serves while NATS cannot be reached, says so, and takes everything in as soon as it can', async () => {
  await nats.broker.server.end('SIGKILL');
  const logged: string[] = [];
  const app = await startApp({
    config: readConfig({
      DATABASE_URL: nats.plane.database.url,
      NATS_URL: nats.broker.server.url.replace('//', '//me:hunter2@'),
      NATS_ACK_WAIT_SECONDS: '2',
      RUNPLANE_PORT: '0',
      RUNPLANE_ROLES: 'api,ingest',
    }),
    log: { ...quiet, warn: (fields, message) => logged.push(JSON.stringify(fields) + message) },
    onProgress: () => {},
  });
  const ready = async () => {
    const answer = await fetch(`${app.url}/readyz`);
    return [answer.status, await answer.json()];
  };
  const ask = async (query: string) => {
    const answer = await fetch(`${app.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    });
    return ((await answer.json()) as { data: unknown }).data;
  };
  // Whoever shares requests out goes on sending them here.
  const withoutBroker = [200, { ready: true, reasons: [notConnected] }];
  expect(await ready()).toEqual(withoutBroker);
  const streams = '{ ingestStreams { stream connected ackWaitSeconds } }';
  await expect
    .poll(() => ask(streams), soon)
    .toEqual({ ingestStreams: [{ stream: 'PIPELINE', connected: false, ackWaitSeconds: 2 }] });

  for (let i = 0; i < 2; i++) {
    await nats.broker.restart();
    await publish(3);
    await expect.poll(events, soon).toHaveLength(3 * (i + 1));
    expect(await ready()).toEqual([200, { ready: true, reasons: [] }]);
    await expect.poll(() => ask(streams), soon).toMatchObject({ ingestStreams: [{ connected: true }] });
    await nats.broker.server.end('SIGKILL');
    await expect.poll(ready, soon).toEqual(withoutBroker);
  }
  expect(logged.join()).toContain('connection refused');
  expect(logged.join()).not.toContain('hunter2');
  await app.stop();
}, 60_000);

test('while the database is down nothing is fetched; then everything comes in, once', async () => {
  const postgres = await startDebianPostgres();
  const installation = await migrate(postgres.url);
  const db = openDatabase(postgres.url);
  await seedRegistry(db);
  const own = await ControlPlane.start({
    database: { url: postgres.url, db, installation, drop: () => db.close() },
  });
  const logged: string[] = [];
  const ingest = nats.broker.ingest(own, {}, { warn: (_, message) => logged.push(message) });
  await publish(2);
  await allAcknowledged();

  postgres.stop('immediate');
  await publish(5);
  await expect.poll(() => logged, soon).toContain('the database does not answer: nothing is fetched');
  // What came at first goes back; what comes later stays where it is.
  await publish(50);
  const { delivered } = await consumer();
  await new Promise((resolve) => setTimeout(resolve, 5000));
  expect((await consumer()).delivered).toMatchObject({
    consumer_seq: delivered.consumer_seq,
    stream_seq: delivered.stream_seq,
  });
  postgres.start();
  await allAcknowledged();
  expect(await eventsOf(own)).toHaveLength(57);
  expect(await incidentsOf(own)).toEqual([]);
  await ingest.stop();
  await own.stop();
  postgres.remove();
}, 60_000);

test('a consumer that is deleted is made again, from the first message that is not stored', async () => {
  startIngest();
  await publish(20);
  await allAcknowledged();
  for (let i = 1; i <= 3; i++) {
    await nats.broker.jsm.consumers.delete('PIPELINE', 'runplane');
    await publish(5);
    await expect.poll(events, soon).toHaveLength(20 + 5 * i);
    // Nothing that was stored was delivered again.
    expect((await consumer()).delivered.consumer_seq).toBe(5);
  }
  await allAcknowledged();
  expect(await incidents()).toMatchObject([
    { kind: 'CONSUMER_MISSING', from: 21, isOver: true },
    { kind: 'CONSUMER_MISSING', from: 26, isOver: true },
    { kind: 'CONSUMER_MISSING', from: 31, isOver: true },
  ]);
});

test('the settings of a consumer follow those of the server, and the log says so', async () => {
  const ingest = startIngest();
  await publish(1);
  await allAcknowledged();
  await ingest.stop();
  const changes: object[] = [];
  startIngest({ ackWaitSeconds: 5, maxDeliver: 3 }, { info: (fields) => changes.push(fields) });
  await expect
    .poll(async () => (await consumer()).config, soon)
    .toMatchObject({ ack_wait: 5e9, max_deliver: 3 });
  expect(changes).toContainEqual(expect.objectContaining({ after: { ack_wait: 5e9, max_deliver: 3 } }));
});

test('messages that take longer than the ack wait are delivered once', async () => {
  startIngest({ ackWaitSeconds: 2 });
  // It learns to take many at once, so that it still waits for more while it has these.
  await Promise.all(Array.from({ length: 200 }, (_, i) => nats.broker.publish('pipeline.x', { i })));
  await allAcknowledged();
  const before = (await consumer()).delivered.consumer_seq;
  await nats.plane.database.db.inTransaction('begin', async (tx) => {
    await tx.query({ text: 'lock table runplane.events in exclusive mode' });
    await publish(5);
    // Longer than the ack wait, and shorter than statements wait for locks.
    await new Promise((resolve) => setTimeout(resolve, 4000));
  });
  await allAcknowledged();
  expect(await events()).toHaveLength(205);
  expect((await consumer()).delivered.consumer_seq - before).toBe(5);
});

test('replicas share the work, and one that stops hands back what it did not do', async () => {
  const received = [0, 0];
  const replicas = [0, 1].map((i) => {
    const services = hearing(nats.plane, () => {
      received[i] = (received[i] ?? 0) + 1;
    });
    return nats.broker.ingest(services, { batch: 5, ackWaitSeconds: 30 });
  });
  await Promise.all(Array.from({ length: 300 }, (_, i) => nats.broker.publish('pipeline.x', { i })));
  await allAcknowledged();
  expect(received.every((count) => count > 20)).toBe(true);
  expect(received[0] ?? 0).toBe(300 - (received[1] ?? 0));

  const more = Promise.all(Array.from({ length: 100 }, (_, i) => nats.broker.publish('pipeline.x', { i })));
  await replicas[0]?.stop();
  await more;
  // With an ack wait of 30 s this would take longer, were anything kept back.
  await allAcknowledged();
  expect(await events()).toHaveLength(400);
  expect(await incidents()).toEqual([]);
});

test('a broker that lost its end in a crash gives numbers again, which are other messages', async () => {
  const last = () => nats.plane.rows('select last_sequence as last from runplane.ingest_streams');
  const first = startIngest();
  await publish(3);
  await expect.poll(last, soon).toEqual([{ last: 3 }]);
  await allAcknowledged();
  await first.stop();
  const { store } = nats.broker.server;
  const copy = `${store}-copy`;
  await nats.broker.server.end('SIGTERM');
  cpSync(store, copy, { recursive: true });
  await nats.broker.restart();
  const second = startIngest();
  await publish(5);
  await expect.poll(last, soon).toEqual([{ last: 8 }]);
  await allAcknowledged();
  await second.stop();
  await nats.broker.server.end('SIGKILL');
  rmSync(store, { recursive: true });
  cpSync(copy, store, { recursive: true });
  await nats.broker.restart();
  const third = startIngest();
  await expect.poll(last, soon).toEqual([{ last: 3 }]);
  await publish(1);
  await allAcknowledged();
  expect(await events()).toHaveLength(9);

  // What had these numbers before was stored, and what has them now is lost.
  await third.stop();
  await publish(3);
  await nats.broker.jsm.streams.purge('PIPELINE');
  startIngest();
  await expect.poll(incidents, soon).toMatchObject([{ kind: 'GAP', from: 5, to: 7 }]);
});

test('a consumer that another replica makes in the same moment was not missing', async () => {
  const { created } = await nats.broker.jsm.streams.info('PIPELINE');
  await nats.plane.rows(
    `insert into runplane.ingest_streams (stream, consumer, stream_created, ack_wait_seconds, max_deliver)
     values ('PIPELINE', 'runplane', $1, 2, 10)`,
    [created],
  );
  await nats.plane.database.db.inTransaction('begin', async (tx) => {
    await tx.query({ text: 'select from runplane.ingest_streams for update' });
    startIngest();
    // It has asked the broker, which had none, and is about to look at what is known.
    await nats.plane.untilBlocked(1);
    const made = await nats.broker.jsm.consumers.add('PIPELINE', {
      durable_name: 'runplane',
      ack_policy: 'explicit',
      ack_wait: 2e9,
      max_deliver: 10,
    });
    await tx.query({
      text: 'update runplane.ingest_streams set consumer_created = $1',
      values: [made.created],
    });
  });
  await publish(1);
  await expect.poll(events, soon).toHaveLength(1);
  expect(await incidents()).toEqual([]);
});
