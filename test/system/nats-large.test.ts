import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Broker, eventsOf, incidentsOf } from '../support/broker.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
let broker: Broker;
beforeEach(async () => {
  plane = await ControlPlane.start();
  broker = await Broker.start({ config: 'max_payload: 16MB' });
  await broker.stream();
});
afterEach(async () => {
  await broker.stop();
  await plane.stop();
});

/** An intake that is watched as it is given events. */
function watched(onReceived: () => void, onStored: () => void = () => {}) {
  const { db, intake } = plane.services;
  const receiveEvent: typeof intake.receiveEvent = async (input) => {
    onReceived();
    try {
      return await intake.receiveEvent(input);
    } finally {
      onStored();
    }
  };
  return { services: { db, intake: { ...intake, receiveEvent } } };
}

test('so many bytes are fetched at once, and a message that has more of them comes alone', async () => {
  for (let i = 0; i < 60; i++) await broker.publish('pipeline.x', { i, text: 'x'.repeat(1_000_000) });
  await broker.publish('pipeline.x', 'x'.repeat(9_000_000));
  await broker.publish('pipeline.x', { last: true });
  let [inWork, most] = [0, 0];
  const received = (): void => {
    inWork++;
    most = Math.max(most, inWork);
  };
  broker.ingest(watched(received, () => inWork--));
  await broker.allAcknowledged();
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(8);
  expect(await eventsOf(plane)).toHaveLength(62);
  expect(await incidentsOf(plane)).toMatchObject([{ kind: 'POISON', from: 61 }]);
});

test('others go on while messages that take long are taken in', async () => {
  for (let i = 0; i < 5; i++) await broker.publish('pipeline.x', { i });
  let turns = 0;
  const at: number[] = [];
  const received = (): void => {
    at.push(turns);
    const until = performance.now() + 60;
    while (performance.now() < until);
  };
  broker.ingest(watched(received));
  while (at.length < 5) {
    await setImmediate();
    turns++;
  }
  expect(new Set(at).size).toBe(5);
  await broker.allAcknowledged();
});
