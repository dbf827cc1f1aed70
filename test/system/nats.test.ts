import { afterEach, beforeEach, expect, test } from 'vitest';
import { Broker } from '../support/broker.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
let broker: Broker;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  await plane.services.configuration.saveRoute({ name: 'r', topic: 'pipeline.work', job: 'one' }, actor);
  broker = await Broker.start();
});
afterEach(async () => {
  await broker.stop();
  await plane.stop();
});

interface Event {
  topic: string;
  key: string;
  correlation: string;
  payload: unknown;
  source: string;
  rejection: { code: string; message: string; bytes: number } | null;
  runs: number;
}

const events = (): Promise<Event[]> =>
  plane.rows<Event>(
    `select topic, idempotency_key as key, correlation_id as correlation, payload, source, rejection,
            (select count(*) from runplane.runs r where r.event_id = e.id)::int as runs from runplane.events e order by received_at, id`,
  );

/** Until the broker has nothing that waits for an acknowledgement. */
const allAcknowledged = (stream = 'PIPELINE'): Promise<void> =>
  expect
    .poll(
      async () => {
        const { num_pending, num_ack_pending } = await broker.jsm.consumers.info(stream, 'runplane');
        return num_pending + num_ack_pending;
      },
      { timeout: 20_000 },
    )
    .toBe(0);

test("the traceparent of a message is its event's and its runs', also of one that is rejected", async () => {
  await broker.stream();
  broker.ingest(plane);
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  await broker.publish('pipeline.work', { n: 1 }, { traceparent });
  await broker.publish('pipeline.work', Buffer.from('no JSON'), { traceparent });
  await broker.publish('pipeline.work', { n: 2 });
  await expect.poll(events, { timeout: 20_000 }).toHaveLength(3);
  await allAcknowledged();
  const traces = `select encode(trace_context, 'hex') as trace from runplane.`;
  const packed = { trace: '4bf92f3577b34da6a3ce929d0e0e473600f067aa0ba902b701' };
  const withTrace = ' where trace_context is not null';
  expect(await plane.rows(`${traces}events${withTrace}`)).toEqual([packed, packed]);
  expect(await plane.rows(`${traces}runs${withTrace}`)).toEqual([packed]);
});

test('messages become events with their runs, by the keys and correlation ids that they name', async () => {
  await broker.stream();
  const ingest = broker.ingest(plane);
  await broker.publish(
    'pipeline.work',
    { idempotency_key: 'own', correlation_id: 'c-1', n: 1 },
    { 'Nats-Msg-Id': 'id' },
  );
  await broker.publish('pipeline.work', { n: 2 }, { 'Nats-Msg-Id': 'by-producer' });
  const seq = await broker.publish('pipeline.other', ['no object']);
  await expect.poll(events, { timeout: 20_000 }).toHaveLength(3);
  await allAcknowledged();
  expect(ingest.notReady()).toEqual([]);
  const [own, byProducer, numbered] = await events();
  expect(own).toEqual({
    topic: 'pipeline.work',
    key: 'own',
    correlation: 'c-1',
    payload: { idempotency_key: 'own', correlation_id: 'c-1', n: 1 },
    source: 'NATS',
    rejection: null,
    runs: 1,
  });
  expect(byProducer).toMatchObject({
    key: 'by-producer',
    correlation: expect.stringMatching(/^evt_/),
    runs: 1,
  });
  expect(numbered).toMatchObject({
    topic: 'pipeline.other',
    key: expect.stringMatching(new RegExp(`^PIPELINE:${seq}:\\d{19}$`)),
    runs: 0,
  });
});
