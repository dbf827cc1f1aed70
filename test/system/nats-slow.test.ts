import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Broker } from '../support/broker.ts';
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

/** An intake that is watched as it is given events. */
function watched(onReceived: () => void) {
  const { db, intake } = plane.services;
  const receiveEvent: typeof intake.receiveEvent = async (input) => {
    onReceived();
    return intake.receiveEvent(input);
  };
  return { services: { db, intake: { ...intake, receiveEvent } } };
}

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
