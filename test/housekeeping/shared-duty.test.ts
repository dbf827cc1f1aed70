import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Duty } from '../../src/db/duty.ts';
import { createSharedDuty, type Piece } from '../../src/housekeeping/shared-duty.ts';
import { setClockAhead } from '../support/clock.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let started: Duty[] = [];
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await Promise.all(started.map((duty) => duty.stop()));
  started = [];
  await database.drop();
});

type Take = (work: (position: number | null) => Promise<Piece<number>>) => Duty;
const replica: Take = (work) => {
  const duty = createSharedDuty<number>({
    db: database.db,
    name: 'counting',
    everyMs: 300_000,
    pauseMs: 0,
    work,
    onError: (error) => {
      throw error;
    },
  });
  started.push(duty);
  return duty;
};
const held = async () =>
  (await database.db.query({ text: 'select from runplane.duties where holder is not null' })).rows.length;

test('goes from piece to piece, remembers its position, and is over until the next round', async () => {
  const positions: (number | null)[] = [];
  const count = (position: number | null): Promise<Piece<number>> => {
    positions.push(position);
    const next = (position ?? 0) + 1;
    return Promise.resolve({ position: next, over: next % 3 === 0 });
  };
  replica(count).start();
  await expect.poll(() => positions.length).toBe(3);
  await expect.poll(held).toBe(0);
  await setClockAhead(database.db, '301 seconds');
  replica(count).start();
  await expect.poll(() => positions.length).toBe(6);
  expect(positions).toEqual([null, 1, 2, 3, 4, 5]);
});

test('is nobody else’s while a replica does it, and goes on elsewhere when that one is not heard of', async () => {
  let release: () => void = () => {};
  const stuck = new Promise<void>((resolve) => {
    release = resolve;
  });
  const first: (number | null)[] = [];
  const second: (number | null)[] = [];
  replica(async (position) => {
    first.push(position);
    if (position === 1) await stuck;
    return { position: (position ?? 0) + 1, over: false };
  }).start();
  await expect.poll(() => first).toEqual([null, 1]);

  const other = (): Duty =>
    replica((position) => {
      second.push(position);
      return Promise.resolve({ position: 100, over: true });
    });
  const early = other();
  early.start();
  // Stopping waits for what it looked at: it looked, and it was not its turn.
  await early.stop();
  expect(second).toEqual([]);

  await setClockAhead(database.db, '61 seconds');
  other().start();
  await expect.poll(() => second).toEqual([1]);
  await expect.poll(held).toBe(0);
  // Who lost its turn cannot move the round back.
  release();
  await Promise.all(started.map((duty) => duty.stop()));
  const { rows } = await database.db.query({ text: 'select position from runplane.duties' });
  expect(rows).toEqual([{ position: 100 }]);
});
