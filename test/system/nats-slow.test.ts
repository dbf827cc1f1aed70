import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { hearing } from '../support/broker.ts';
import { natsTests } from '../support/nats-tests.ts';

const nats = natsTests();

test('others go on while messages that take long are taken in', async () => {
  for (let i = 0; i < 5; i++) await nats.broker.publish('pipeline.x', { i });
  let turns = 0;
  const at: number[] = [];
  const received = (): void => {
    at.push(turns);
    const until = performance.now() + 60;
    while (performance.now() < until);
  };
  nats.broker.ingest(hearing(nats.plane, received));
  while (at.length < 5) {
    await setImmediate();
    turns++;
  }
  expect(new Set(at).size).toBe(5);
  await nats.allAcknowledged();
});
