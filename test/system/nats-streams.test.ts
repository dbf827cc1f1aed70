import { expect, test } from 'vitest';
import { Client } from '../graphql/client.ts';
import { hearing } from '../support/broker.ts';
import { natsTests, soon } from '../support/nats-tests.ts';

const streams = ['BILLING', 'PIPELINE'];
const nats = natsTests({ streams });
const { allAcknowledged, consumer, events, incidents } = nats;

const missing = 'nats: a stream is missing, ingestStreams says which';

/** Of each replica, the events of each stream that it was given. */
function startReplicas(count: number, batch: number) {
  const received = Array.from({ length: count }, (): Record<string, number> => ({ billing: 0, pipeline: 0 }));
  const replicas = received.map((own) => {
    const services = hearing(nats.plane, ({ topic }) => {
      const [stream = ''] = topic.split('.');
      own[stream] = (own[stream] ?? 0) + 1;
    });
    return nats.broker.ingest(services, { streams, batch, ackWaitSeconds: 30 });
  });
  return { received, replicas };
}

const publishTo = async (stream: string, count: number): Promise<void> => {
  await Promise.all(Array.from({ length: count }, (_, n) => nats.broker.publish(`${stream}.x`, { n })));
};

const shown = async () =>
  (
    await new Client(nats.plane).query(
      `{ ingestStreams { stream consumer subjects connected pending unacknowledged lastSequence incidents { nodes { kind resolvedAt } } } }`,
    )
  ).ingestStreams;
const well = (stream: string, lastSequence: number) => ({
  stream,
  consumer: 'runplane',
  subjects: [`${stream.toLowerCase()}.>`],
  connected: true,
  pending: 0,
  unacknowledged: 0,
  lastSequence,
  incidents: { nodes: [] },
});

test('two replicas take in several streams at once, each by a consumer of its own, and share each of them', async () => {
  const { received, replicas } = startReplicas(2, 5);
  // Both are at work.
  await expect.poll(async () => (await consumer('BILLING')).num_waiting, soon).toBe(2);
  await expect.poll(async () => (await consumer()).num_waiting, soon).toBe(2);
  await Promise.all([publishTo('billing', 200), publishTo('pipeline', 300)]);
  await allAcknowledged('BILLING');
  await allAcknowledged();

  for (const replica of replicas) expect(replica.notReady()).toEqual([]);
  for (const [stream, count] of [
    ['billing', 200],
    ['pipeline', 300],
  ] as const) {
    const shares = received.map((own) => own[stream] ?? 0);
    expect(Math.min(...shares), stream).toBeGreaterThan(10);
    expect(shares[0]).toBe(count - (shares[1] ?? 0));
    // Each came once, to its own consumer.
    const { delivered, num_redelivered } = await consumer(stream.toUpperCase());
    expect({ ...delivered, num_redelivered }).toMatchObject({
      consumer_seq: count,
      stream_seq: count,
      num_redelivered: 0,
    });
  }
  const topics = (await events()).map(({ topic }) => topic);
  expect(topics.filter((topic) => topic === 'billing.x')).toHaveLength(200);
  expect(topics).toHaveLength(500);
  await expect.poll(shown, soon).toEqual([well('BILLING', 200), well('PIPELINE', 300)]);
  expect(await incidents()).toEqual([]);
});

test('while one of its streams is gone, a replica goes on with the other, and says which one it misses', async () => {
  const { replicas } = startReplicas(2, 100);
  await publishTo('billing', 5);
  await publishTo('pipeline', 5);
  await expect.poll(shown, soon).toEqual([well('BILLING', 5), well('PIPELINE', 5)]);
  const before = (await consumer()).created;

  await nats.broker.jsm.streams.delete('BILLING');
  for (const replica of replicas) await expect.poll(() => replica.notReady(), soon).toEqual([missing]);
  await publishTo('pipeline', 20);
  await expect.poll(events, soon).toHaveLength(30);
  await allAcknowledged();
  await expect.poll(shown, soon).toMatchObject([
    {
      stream: 'BILLING',
      connected: false,
      incidents: { nodes: [{ kind: 'STREAM_MISSING', resolvedAt: null }] },
    },
    well('PIPELINE', 25),
  ]);
  for (const replica of replicas) expect(replica.notReady()).toEqual([missing]);

  await nats.broker.stream('BILLING');
  await publishTo('billing', 3);
  await expect.poll(events, soon).toHaveLength(33);
  for (const replica of replicas) await expect.poll(() => replica.notReady(), soon).toEqual([]);
  await expect.poll(shown, soon).toMatchObject([
    {
      stream: 'BILLING',
      connected: true,
      pending: 0,
      lastSequence: 3,
      incidents: { nodes: [{ kind: 'STREAM_MISSING', resolvedAt: expect.any(String) }] },
    },
    well('PIPELINE', 25),
  ]);
  // Nothing of that touched the other one's consumer.
  const after = await consumer();
  expect({ created: after.created, ...after.delivered }).toMatchObject({ created: before, consumer_seq: 25 });
});
