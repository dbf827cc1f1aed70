import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Blackhole, startBlackhole } from '../support/blackhole.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { count, tier } from '../support/tier.ts';

// The times of the product where there is time; else the same, faster.
const signalTimes =
  tier === 'soak'
    ? undefined
    : { proveAliveEveryMs: 1_000, answerWithinMs: 400, pollEveryMs: 900, pollEveryWhileDeafMs: 100 };

/** One replica that writes, and one that hears of it through a network that loses packets. */
let writer: ControlPlane;
let reader: ControlPlane;
let network: Blackhole;
beforeEach(async () => {
  writer = await ControlPlane.start();
  await writer.agent('a');
  await writer.job('one', ['a']);
  network = await startBlackhole(writer.database.url);
  reader = await ControlPlane.start({ database: writer.database, listenUrl: network.url, signalTimes });
});
afterEach(async () => {
  await network.stop();
  await writer.stop();
});

const listening = () => reader.services.signal.listening;

test('a connection for signals that is dead and not closed is noticed within 15 s; events arrive within 10 s all the while', async () => {
  const stream = reader.services.changeLog.runChanges({}, null);
  await stream.next();
  let seen = '';
  const reading = (async () => {
    for await (const { changes } of stream) for (const { runId } of changes) seen = runId;
  })();
  /** A commit of the other replica is seen by this one, within the time that is promised. */
  const expectDelivery = async (): Promise<void> => {
    const runId = await writer.launch('one');
    await expect.poll(() => seen, { timeout: 10_000, interval: 20 }).toBe(runId);
  };

  const rounds = count({ test: 1, soak: 20 });
  for (let round = 0; round < rounds; round++) {
    await expectDelivery();
    network.swallow();
    const swallowedAt = performance.now();
    await expectDelivery();
    const left = 15_000 - (performance.now() - swallowedAt);
    await expect.poll(listening, { timeout: left, interval: 20 }).toBe(false);
    await expectDelivery();
    network.carry();
    await expect.poll(listening, { timeout: 20_000, interval: 20 }).toBe(true);
  }
  await expectDelivery();
  await stream.return?.();
  await reading;
  await reader.services.stop();
}, 900_000);

test('a server stops although its connection for signals is dead', async () => {
  network.swallow();
  reader.services.signal.changed();
  await reader.services.stop();
  expect(listening()).toBe(false);
});

test('a server whose connection for signals cannot be made works, and listens as soon as it can', async () => {
  await reader.services.stop();
  network.swallow();
  reader = await ControlPlane.start({ database: writer.database, listenUrl: network.url, signalTimes });
  expect(listening()).toBe(false);
  network.carry();
  await expect.poll(listening, { timeout: 20_000 }).toBe(true);
  await reader.services.stop();
});
