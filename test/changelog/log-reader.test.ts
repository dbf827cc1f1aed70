import { expect, test } from 'vitest';
import { LogReader } from '../../src/changelog/log-reader.ts';
import { createTestDatabase } from '../support/database.ts';

test('who asks while a reading is under way is answered by one that began later, however many ask', async () => {
  const database = await createTestDatabase();
  /** Ends the readings that are under way. */
  const ends: (() => void)[] = [];
  const reader = new LogReader<string, null>({
    db: database.db,
    readSince: (snapshot) => new Promise((resolve) => ends.push(() => resolve({ snapshot, entries: [] }))),
    keysOf: () => [],
    onSignal: () => () => {},
    onError: (error) => {
      throw error;
    },
  });
  await reader.join({ push: () => {} }, { name: 'all', keys: null, scope: null });
  const answered: string[] = [];
  const ask = (who: string): Promise<void> => reader.read().then(() => void answered.push(who));
  const settle = () => new Promise((resolve) => setImmediate(resolve));

  const first = ask('first');
  const others = ['second', 'third', 'fourth'].map(ask);
  ends[0]?.();
  await settle();
  expect(answered).toEqual(['first']);
  expect(ends).toHaveLength(2);
  ends[1]?.();
  await Promise.all([first, ...others]);
  expect(answered.toSorted()).toEqual(['first', 'fourth', 'second', 'third']);
  expect(ends).toHaveLength(2);
  reader.stop();
  await database.drop();
});

test('who joins while a reading for others is under way is read for from where he joined', async () => {
  const database = await createTestDatabase();
  const readings: { since: string; scopes: string[]; end(snapshot: string): void }[] = [];
  const reader = new LogReader<string, string>({
    db: database.db,
    readSince: (since, scopes) =>
      new Promise((resolve) => {
        const end = (snapshot: string): void => resolve({ snapshot, entries: [snapshot] });
        readings.push({ since, scopes: [...scopes], end });
      }),
    keysOf: () => [],
    onSignal: () => () => {},
    onError: (error) => {
      throw error;
    },
  });
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const told: Record<string, string[]> = { early: [], late: [] };
  const join = (name: string): Promise<string> =>
    reader.join({ push: (entries) => told[name]?.push(...entries) }, { name, keys: null, scope: name });

  const start = await join('early');
  const late = join('late');
  await settle();
  // It asks for more than the reading under way can tell, so another one follows at once.
  const more = reader.read();
  readings[0]?.end('2:2:');
  expect(await late).toBe('2:2:');
  for (let i = 1; i < 3; i++) {
    await settle();
    readings[i]?.end(`${i + 2}:${i + 2}:`);
  }
  await more;
  const read = readings.map(({ since, scopes }) => [since, ...scopes]);
  expect(read[0]).toEqual([start, 'early']);
  expect(read.at(-1)).toEqual(['2:2:', 'early', 'late']);
  expect(told).toEqual({ early: ['2:2:', '4:4:'], late: ['4:4:'] });
  reader.stop();
  await database.drop();
});
