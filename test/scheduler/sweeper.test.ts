import { beforeEach, expect, test } from 'vitest';
import type { Duty } from '../../src/db/duty.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { createSweeper } from '../../src/scheduler/sweeper.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
let sweeper: Duty;
let failures: unknown[];
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a', { leaseSeconds: 5, timeoutSeconds: 1000 });
  await plane.job('one', ['a']);
  failures = [];
  sweeper = createSweeper({
    db: plane.services.db,
    results: plane.services.results,
    onError: (error) => {
      failures.push(error);
    },
  });
  return async () => {
    await sweeper.stop();
    await plane.stop();
  };
});

const claim = async (count: number): Promise<Assignment[]> => {
  for (let n = 0; n < count; n++) await plane.launch('one');
  return plane.claim(['a'], count);
};
const lost = async (): Promise<string[]> =>
  (
    await plane.rows<{ id: string }>(`select id from runplane.attempts where status = 'LOST' order by id`)
  ).map(({ id }) => id);

/** Until the sweeper looked: an attempt that ran too long is over at once. */
async function untilItLooked(): Promise<void> {
  const [late] = await claim(1);
  await plane.rows(
    `update runplane.leases set timeout_at = runplane.clock() - interval '1 s' where attempt_id = $1`,
    [late?.attemptId],
  );
  const over = () => plane.rows('select status from runplane.attempts where id = $1', [late?.attemptId]);
  await expect.poll(over).toEqual([{ status: 'TIMED_OUT' }]);
}

const heartbeat = async (assignment: Assignment): Promise<string | undefined> =>
  (await plane.services.dispatch.extendLeases([plane.credentials(assignment)]))[0]?.state;

test('leases that ran out while nobody was there can still be extended, and are lost where they are not', async () => {
  const [alive, gone] = await claim(2);
  if (!alive || !gone) throw new Error('nothing was claimed');
  await plane.expire(alive);
  await plane.expire(gone);
  sweeper.start();
  await untilItLooked();
  expect(await lost()).toEqual([]);
  expect(await heartbeat(alive)).toBe('HELD');
  await expect.poll(lost).toEqual([gone.attemptId]);
  expect(await heartbeat(alive)).toBe('HELD');
});

test('so it is after the database was away', async () => {
  sweeper.start();
  const [first] = await claim(1);
  if (!first) throw new Error('nothing was claimed');
  await plane.expire(first);
  await expect.poll(lost).toEqual([first.attemptId]);

  await plane.rows('alter table runplane.scan_starts rename to away');
  await expect.poll(() => failures.length, { timeout: 30_000 }).toBeGreaterThan(7);
  await plane.rows('alter table runplane.away rename to scan_starts');
  const [alive] = await plane.claim(['a'], 1);
  if (!alive) throw new Error('the lost task was not there again');
  await plane.expire(alive);
  await untilItLooked();
  expect(await heartbeat(alive)).toBe('HELD');
  expect(await lost()).toEqual([first.attemptId]);
});

test('while it listens, a lease that runs out is lost at once', async () => {
  sweeper.start();
  const [first, second] = await claim(2);
  if (!first || !second) throw new Error('nothing was claimed');
  await plane.expire(first);
  await expect.poll(lost).toEqual([first.attemptId]);
  await plane.expire(second);
  await untilItLooked();
  await expect.poll(lost).toHaveLength(2);
});
