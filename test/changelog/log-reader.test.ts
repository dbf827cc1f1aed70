import { expect, test } from 'vitest';
import { LogReader } from '../../src/changelog/log-reader.ts';
import { endOf } from '../../src/changelog/snapshot.ts';
import { createTestDatabase } from '../support/database.ts';

test('who asks while a reading is under way is answered by one that began later, however many ask', async () => {
  const database = await createTestDatabase();
  /** Ends the readings that are under way. */
  const ends: (() => void)[] = [];
  const reader = new LogReader<string, null>({
    db: database.db,
    readSince: (snapshot) =>
      new Promise((resolve) => ends.push(() => resolve({ snapshot, end: endOf(snapshot), entries: [] }))),
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
        const end = (snapshot: string): void =>
          resolve({ snapshot, end: endOf(snapshot), entries: [snapshot] });
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
  const join = async (name: string): Promise<string> => {
    const subscriber = { push: (entries: readonly string[]) => void told[name]?.push(...entries) };
    return (await reader.join(subscriber, { name, keys: null, scope: name })).snapshot;
  };

  const start = await join('early');
  const late = join('late');
  await settle();
  // It asks for more than the reading under way can tell, so another one follows at once.
  const more = reader.read();
  readings[0]?.end('2:2:');
  expect(await late).toBe('2:2:');
  await settle();
  readings[1]?.end('3:3:');
  await more;
  expect(readings.map(({ since, scopes }) => [since, ...scopes])).toEqual([
    [start, 'early'],
    ['2:2:', 'early', 'late'],
  ]);
  expect(told).toEqual({ early: ['2:2:', '3:3:'], late: ['3:3:'] });
  reader.stop();
  await database.drop();
});

test('however many join and leave meanwhile, what a reading found is told, and the next one goes on from there', async () => {
  const database = await createTestDatabase();
  const asked: string[] = [];
  let end = (): void => {};
  let signal = (): void => {};
  const reader = new LogReader<string, null>({
    db: database.db,
    readSince: (snapshot) => {
      asked.push(snapshot);
      const n = asked.length;
      return new Promise((resolve) => {
        end = () => resolve({ snapshot: `${n}:${n}:`, end: BigInt(n), entries: [`entry ${n}`] });
      });
    },
    keysOf: () => [],
    onSignal: (listener) => {
      signal = listener;
      return () => {};
    },
    onError: (error) => {
      throw error;
    },
  });
  const everything = { name: 'all', keys: null, scope: null };
  const told: string[] = [];
  await reader.join({ push: (entries) => void told.push(...entries) }, everything);
  const joined: { at: string; told: string[] }[] = [];
  const settle = () => new Promise((resolve) => setTimeout(resolve, 0));

  void reader.read();
  for (let n = 1; n <= 20; n++) {
    // One who joins during each reading, and one who only wants to know.
    const one: { at: string; told: string[] } = { at: '', told: [] };
    joined.push(one);
    const subscriber = { push: (entries: readonly string[]) => void one.told.push(...entries) };
    reader
      .join(subscriber, { ...everything, name: `${n % 3}` })
      .then(({ snapshot }) => {
        one.at = snapshot;
      })
      .catch(expect.unreachable);
    signal();
    end();
    await settle();
    await expect.poll(() => asked.length, { timeout: 5_000 }).toBeGreaterThan(n);
  }
  expect(asked.slice(1)).toEqual(asked.slice(1).map((_, i) => `${i + 1}:${i + 1}:`));
  expect(told).toEqual(asked.slice(1).map((_, i) => `entry ${i + 1}`));
  // What one sees whose snapshot it is told is history; all that follows is pushed.
  for (const { at, told: later } of joined.filter((one) => one.at !== '')) {
    const [history = 0] = at.split(':').map(Number);
    expect(later).toEqual(told.filter((entry) => Number(entry.slice(6)) > history));
  }
  reader.stop();
  await database.drop();
});

test('who joins when the reader is stopped is answered at once, as those are who wait then', async () => {
  const database = await createTestDatabase();
  const reader = new LogReader<string, null>({
    db: database.db,
    readSince: () => new Promise(() => {}),
    keysOf: () => [],
    onSignal: () => () => {},
    onError: (error) => {
      throw error;
    },
  });
  const join = () => reader.join({ push: () => {} }, { name: 'all', keys: null, scope: null });
  const { snapshot, end } = await join();
  const waiting = join();
  reader.stop();
  expect(await waiting).toEqual({ snapshot, end });
  expect(await join()).toEqual({ snapshot, end });
  expect(reader.subscribers).toBe(0);
  await database.drop();
});
