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
