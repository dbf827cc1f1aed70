import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Changes, RunChange } from '../../src/changelog/types.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  await plane.job('two', ['a']);
});
afterEach(async () => {
  vi.useRealTimers();
  await plane.stop();
});

const open = (filter = {}) => plane.services.changeLog.runChanges(filter, null);
const launchMany = (count: number) =>
  plane.services.intake.launchRuns(Array.from({ length: count }, () => ({ job: 'one' })));

test('who waits is offered a message first; what it does not take comes as if it had not been, in order and once', async () => {
  const stream = open();
  const seen: string[] = [];
  const how = { taken: 0, asked: 0 };
  stream.offerTo?.(({ changes }) => {
    if (Math.random() < 0.3) return false;
    seen.push(...changes.map(({ runId }) => runId));
    how.taken++;
    return true;
  });
  await stream.next();
  const launched: string[] = [];
  const total = 200;
  const reading = (async () => {
    for await (const { changes } of stream) {
      seen.push(...changes.map(({ runId }) => runId));
      if (changes.length > 0) how.asked++;
      // Busy for a moment, in which more may come.
      if (Math.random() < 0.5) await plane.services.changeLog.currentCursor();
    }
  })();
  while (launched.length < total) launched.push(await plane.launch('one'));
  await expect.poll(() => seen.length, { timeout: 10_000 }).toBe(total);
  await stream.return?.();
  await reading;
  expect(seen).toEqual(launched);
  expect(how.taken).toBeGreaterThan(0);
  expect(how.asked).toBeGreaterThan(0);
});

test('much that commits together is offered in parts, whose cursors do not pass what is still to be told', async () => {
  const stream = open();
  const parts: { runIds: string[]; cursor: string }[] = [];
  stream.offerTo?.(({ changes, cursor }) => {
    parts.push({ runIds: changes.map(({ runId }) => runId), cursor });
    return true;
  });
  await stream.next();
  const waiting = stream.next();
  await launchMany(600);
  const seen = () => parts.flatMap(({ runIds }) => runIds);
  await expect.poll(() => seen().length, { timeout: 10_000 }).toBe(600);
  await stream.return?.();
  await waiting;
  expect(Math.max(...parts.map(({ runIds }) => runIds.length))).toBeLessThanOrEqual(256);
  for (const [i, { cursor }] of parts.entries()) {
    const told = new Set(parts.slice(0, i + 1).flatMap(({ runIds }) => runIds));
    const resumed = plane.services.changeLog.runChanges({}, cursor);
    for (let caughtUp = false; !caughtUp; ) {
      const { value } = (await resumed.next()) as IteratorYieldResult<Changes<RunChange>>;
      for (const { runId } of value.changes) told.add(runId);
      ({ caughtUp } = value);
    }
    await resumed.return?.();
    expect(told.size).toBe(600);
  }
});

test('a stream of runs that was told the last change without asking for it completes all the same', async () => {
  const run = await plane.launch('one');
  const stream = open({ ids: [run] });
  const statuses: string[] = [];
  stream.offerTo?.(({ changes }) => {
    statuses.push(...changes.map(({ toStatus }) => toStatus));
    return true;
  });
  await stream.next();
  const end = stream.next();
  for (const task of await plane.claim(['a'])) await plane.report(task, { status: 'COMPLETED' });
  expect(await end).toEqual({ done: true, value: undefined });
  expect(statuses).toEqual(['RUNNING', 'COMPLETED']);
});

test('a stream says something at least every 15 s, whatever happens that is none of its business', async () => {
  // Time goes on, too: signals between replicas wait for some of it.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'], shouldAdvanceTime: true });
  const stream = open({ jobs: ['two'] });
  const handed: string[] = [];
  stream.offerTo?.(({ changes }) => {
    handed.push(...changes.map(({ job }) => job));
    return true;
  });
  await stream.next();
  const others = open();
  await others.next();
  const isOpen = async (waiting: Promise<unknown>): Promise<boolean> =>
    Promise.race([
      waiting.then(() => false),
      new Promise<boolean>((resolve) => setImmediate(() => resolve(true))),
    ]);

  let waiting = stream.next();
  vi.advanceTimersByTime(8_000);
  // Others are told when the stream, which is before them, was asked.
  await plane.launch('one');
  await others.next();
  expect(await isOpen(waiting)).toBe(true);
  vi.advanceTimersByTime(7_000);
  expect(await waiting).toMatchObject({ done: false, value: { caughtUp: true, changes: [] } });

  // From the last message on, also from one that was handed over.
  waiting = stream.next();
  vi.advanceTimersByTime(10_000);
  await plane.launch('two');
  while (handed.length === 0) await others.next();
  expect(handed).toEqual(['two']);
  vi.advanceTimersByTime(8_000);
  expect(await isOpen(waiting)).toBe(true);
  vi.advanceTimersByTime(7_000);
  expect(await waiting).toMatchObject({ done: false, value: { changes: [] } });
  await stream.return?.();
  await others.return?.();
});
