import { expect, test } from 'vitest';
import { readMessage } from '../../src/ingest/stored-messages.ts';
import { Client } from '../graphql/client.ts';
import { actor } from '../support/control-plane.ts';
import { natsTests, soon } from '../support/nats-tests.ts';

const nats = natsTests({
  server: { config: 'max_payload: 4MB' },
  prepare: async (plane) => {
    await plane.agent('a');
    await plane.job('one', ['a']);
    await plane.services.configuration.saveRoute({ name: 'r', topic: 'pipeline.work', job: 'one' }, actor);
  },
});
const { startIngest, allAcknowledged, events, incidents } = nats;

const work = 'pipeline.work';

test("the traceparent of a message is its event's and its runs', also of one that is rejected", async () => {
  startIngest();
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  await nats.broker.publish('pipeline.work', { n: 1 }, { traceparent });
  await nats.broker.publish('pipeline.work', Buffer.from('no JSON'), { traceparent });
  await nats.broker.publish('pipeline.work', { n: 2 });
  await allAcknowledged();
  const traces = `select encode(trace_context, 'hex') as trace from runplane.`;
  const packed = { trace: '4bf92f3577b34da6a3ce929d0e0e473600f067aa0ba902b701' };
  const withTrace = ' where trace_context is not null';
  expect(await nats.plane.rows(`${traces}events${withTrace}`)).toEqual([packed, packed]);
  expect(await nats.plane.rows(`${traces}runs${withTrace}`)).toEqual([packed]);
});

test('messages become events with their runs, by the keys and correlation ids that they name', async () => {
  const ingest = startIngest();
  const own = { idempotency_key: 'own', correlation_id: 'c-1', n: 1 };
  await nats.broker.publish(work, own, { 'Nats-Msg-Id': 'id' });
  await nats.broker.publish(work, { n: 2 }, { 'Nats-Msg-Id': 'by-producer' });
  const seq = await nats.broker.publish('pipeline.other', ['no object']);
  await expect.poll(events, { timeout: 20_000 }).toHaveLength(3);
  await allAcknowledged();
  expect(ingest.notReady()).toEqual([]);
  expect(await events()).toMatchObject([
    { topic: work, key: 'own', correlation: 'c-1', payload: own, source: 'NATS', rejection: null, runs: 1 },
    { key: 'by-producer', correlation: expect.stringMatching(/^evt_/), runs: 1 },
    { topic: 'pipeline.other', key: expect.stringMatching(new RegExp(`^PIPELINE:${seq}:\\d{19}$`)), runs: 0 },
  ]);
  expect(await incidents()).toEqual([]);
});

test('what is published again with its key, by whatever way, is no second event', async () => {
  const [byGraphql] = await nats.plane.services.intake.publishEvents([
    { topic: work, payload: { n: 1 }, idempotencyKey: 'k' },
  ]);
  startIngest();
  await nats.broker.publish(work, { n: 1 }, { 'Nats-Msg-Id': 'k' });
  const named = { idempotency_key: 'named' };
  for (let i = 0; i < 5; i++) await nats.broker.publish(work, named);
  // The same without a key is another message, each time.
  for (let i = 0; i < 2; i++) await nats.broker.publish(work, { n: 3 });
  await allAcknowledged();
  expect((await events()).map(({ payload, source, runs }) => ({ payload, source, runs }))).toEqual([
    { payload: { n: 1 }, source: 'GRAPHQL', runs: 1 },
    { payload: named, source: 'NATS', runs: 1 },
    { payload: { n: 3 }, source: 'NATS', runs: 1 },
    { payload: { n: 3 }, source: 'NATS', runs: 1 },
  ]);
  expect(byGraphql).toMatchObject({ kind: 'PublishEventSuccess' });
  expect(await incidents()).toEqual([]);
});

const poison: Record<string, { body: string | Uint8Array; header?: Record<string, string>; code: string }> = {
  'no JSON': { body: '{"a": ', code: 'NOT_JSON' },
  'no UTF-8': { body: new Uint8Array([34, 255, 34]), code: 'NOT_JSON' },
  nothing: { body: '', code: 'NOT_JSON' },
  'too large': { body: JSON.stringify('x'.repeat(1_100_000)), code: 'TOO_LARGE' },
  'a key that is no text': { body: '{"idempotency_key": 5}', code: 'INVALID_ENVELOPE' },
  'a correlation id that is blank': { body: '{"correlation_id": " "}', code: 'INVALID_ENVELOPE' },
  'a NUL that cannot be stored': { body: '{"a": "\\u0000"}', code: 'INVALID_ENVELOPE' },
  'a key of Object': { body: '{"__proto__": 1}', code: 'INVALID_ENVELOPE' },
  'an integer that would be rounded': { body: '{"a": 9007199254740993}', code: 'INVALID_ENVELOPE' },
  "a producer's key that is too long": {
    body: '{}',
    header: { 'Nats-Msg-Id': 'k'.repeat(300) },
    code: 'INVALID_ENVELOPE',
  },
};

test('a message that is no event is kept, shown, replayable and not delivered again, and others are not held up', async () => {
  for (const { body, header } of Object.values(poison)) await nats.broker.publish(work, body, header);
  // It looks like a problem of ours, and is a payload.
  await nats.broker.publish(work, { kind: 'InvalidInput', message: 'm', field: null });
  startIngest();
  await allAcknowledged();
  const stored = await events();
  expect(stored.filter(({ rejection }) => rejection === null)).toMatchObject([{ runs: 1 }]);
  const rejected = stored.filter(({ rejection }) => rejection !== null);
  for (const { body, code } of Object.values(poison)) {
    const bytes = Buffer.from(body);
    expect(rejected.filter(({ raw }) => raw?.equals(bytes.subarray(0, 65_536)))).toMatchObject([
      { topic: work, source: 'NATS', payload: null, rejection: { code, bytes: bytes.length }, runs: 0 },
    ]);
  }
  expect(await incidents()).toHaveLength(Object.keys(poison).length);
  for (const [i, incident] of (await incidents()).sort((a, b) => (a.from ?? 0) - (b.from ?? 0)).entries())
    expect(incident).toMatchObject({ kind: 'POISON', from: i + 1, to: i + 1, isOver: false });
  for (const { id } of rejected)
    expect(await nats.plane.services.actions.replayEvent({ eventId: id }, actor)).toMatchObject({
      kind: 'InvalidInput',
    });

  const query = `{ events(filter: { rejected: true, sources: [NATS] }) { nodes { payload rejection { code message bytes raw } } }
    ingestStreams { stream incidents { nodes { kind event { id rejection { code } } } } } }`;
  const shown = await new Client(nats.plane).query(query);
  expect(shown.events.nodes).toContainEqual({
    payload: null,
    rejection: {
      code: 'NOT_JSON',
      message: 'The message is no JSON in UTF-8.',
      bytes: 6,
      raw: Buffer.from('{"a": ').toString('base64'),
    },
  });
  expect(shown.ingestStreams[0].incidents.nodes[0]).toMatchObject({ kind: 'POISON', event: {} });
  const hidden = await new Client(nats.plane, ['READ']).query(query);
  expect(hidden.events.nodes[0].rejection).toMatchObject({ message: null, raw: null });
});

test('a message whose headers are none is kept, and those that came with it are stored', async () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  await nats.broker.publish(work, { n: 1 });
  for (const header of ['a name: x', 'näme: x', 'name: x\ny'])
    await nats.broker.publishRaw(work, header, '{}');
  await nats.broker.publishRaw(work, `TraceParent: ${traceparent}`, '{"n": 2}');
  const ingest = startIngest({ maxDeliver: 2 });
  await allAcknowledged();
  const rejected = (await events()).flatMap(({ rejection }) => rejection ?? []);
  expect(rejected.map(({ code }) => code)).toEqual(Array(3).fill('INVALID_ENVELOPE'));
  expect(await events()).toHaveLength(5);
  const poisoned = (await incidents()).filter(({ kind }) => kind === 'POISON');
  expect(new Set(poisoned.map(({ from }) => from))).toEqual(new Set([2, 3, 4]));
  expect(await incidents()).toHaveLength(3);
  expect((await nats.broker.jsm.consumers.info('PIPELINE', 'runplane')).delivered.consumer_seq).toBe(5);
  await ingest.stop();
  // The same is read of one that is read by its number.
  const read = async (seq: number) => {
    const message = await readMessage(nats.broker.jsm, 'PIPELINE', seq);
    return message && { ...message, traceparent: message.header('traceparent') };
  };
  for (const seq of [2, 3, 4]) expect(await read(seq)).toMatchObject({ hasBrokenHeaders: true });
  expect(await read(5)).toMatchObject({ hasBrokenHeaders: false, traceparent });
  const traces = `select encode(trace_context, 'hex') as trace from runplane.events where trace_context is not null`;
  expect(await nats.plane.rows(traces)).toEqual([
    { trace: '4bf92f3577b34da6a3ce929d0e0e473600f067aa0ba902b701' },
  ]);
});

test('the same key with another payload is an incident; its message can come in when the first is gone', async () => {
  startIngest();
  await nats.broker.publish(work, { idempotency_key: 'k', n: 1 });
  const seq = await nats.broker.publish(work, { idempotency_key: 'k', n: 2, correlation_id: 'c' });
  await allAcknowledged();
  const [first, second] = await events();
  expect(first).toMatchObject({ key: 'k', payload: { n: 1 }, rejection: null });
  expect(second).toMatchObject({ key: 'k', correlation: 'c', rejection: { code: 'CONFLICT' }, runs: 0 });
  expect(await incidents()).toEqual([
    { kind: 'CONFLICT', from: seq, to: seq, eventId: second?.id, isOver: false },
  ]);
  const replay = () => nats.plane.services.actions.replayEvent({ eventId: second?.id ?? '' }, actor);
  expect(await replay()).toMatchObject({ kind: 'IdempotencyConflict', existingId: first?.id });

  await nats.plane.rows('delete from runplane.idempotency_records');
  expect(await replay()).toMatchObject({ kind: 'PublishEventSuccess', runIds: { length: 1 } });
  expect((await events()).find(({ id }) => id === second?.id)).toMatchObject({
    payload: { idempotency_key: 'k', n: 2, correlation_id: 'c' },
    rejection: null,
    raw: null,
    runs: 1,
  });
  expect(await incidents()).toMatchObject([{ kind: 'CONFLICT', isOver: true }]);
});

test('a message that fails for a reason of ours is kept at its last delivery, and can be replayed', async () => {
  await nats.plane.rows(`create function runplane.fail() returns trigger language plpgsql as $$
    begin if new.payload ->> 'fails' = 'yes' then raise exception 'it fails'; end if; return new; end $$`);
  await nats.plane.rows(
    'create trigger fail before insert on runplane.events for each row execute function runplane.fail()',
  );
  const failures: object[] = [];
  startIngest({ maxDeliver: 2 }, { error: (fields) => failures.push(fields) });
  await nats.broker.publish(work, { fails: 'yes' });
  await nats.broker.publish(work, { fails: 'no' });
  await allAcknowledged();
  expect(await events()).toMatchObject([{ rejection: null }, { rejection: { code: 'FAILED' } }]);
  expect(failures).toHaveLength(2);
  await nats.plane.rows('drop trigger fail on runplane.events');
  const [, failed] = await events();
  expect(await nats.plane.services.actions.replayEvent({ eventId: failed?.id ?? '' }, actor)).toMatchObject({
    kind: 'PublishEventSuccess',
    runIds: { length: 1 },
  });
});

test('a stream is shown with its settings on the broker, and with what waits', async () => {
  await nats.broker.jsm.streams.update('PIPELINE', { max_age: 3_600_000_000_000 });
  startIngest();
  const shown = async () =>
    (
      await new Client(
        nats.plane,
      ).query(`{ ingestStreams { stream consumer subjects ackWaitSeconds maxDeliver maxAgeSeconds
         connected pending unacknowledged redelivered oldestPendingAgeSeconds lastSequence } }`)
    ).ingestStreams;
  const settings = {
    stream: 'PIPELINE',
    consumer: 'runplane',
    subjects: ['pipeline.>'],
    ackWaitSeconds: 2,
    maxDeliver: 10,
    maxAgeSeconds: 3600,
    connected: true,
  };
  const nothing = { pending: 0, unacknowledged: 0, redelivered: 0, oldestPendingAgeSeconds: null };
  await expect.poll(shown, soon).toEqual([{ ...settings, ...nothing, lastSequence: 0 }]);
  await nats.plane.database.db.inTransaction('begin', async (tx) => {
    await tx.query({ text: 'lock table runplane.events in exclusive mode' });
    for (let n = 1; n <= 20; n++) await nats.broker.publish(work, { n });
    // It has as many as it begins with; the rest waits for these.
    await expect
      .poll(shown, soon)
      .toMatchObject([
        { unacknowledged: 10, pending: 10, lastSequence: 20, oldestPendingAgeSeconds: expect.any(Number) },
      ]);
  });
  await expect.poll(shown, soon).toMatchObject([{ ...nothing, lastSequence: 20 }]);
  expect(await events()).toHaveLength(20);
});
