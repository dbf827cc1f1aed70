import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

interface Journal {
  entries: { idx: number; when: number; tag: string }[];
}

const read = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../drizzle/meta/${name}`, import.meta.url), 'utf8'));

test('each migration is younger than the one before, or databases that stand there would never get it', () => {
  const { entries } = read('_journal.json') as Journal;
  const times = entries.map(({ when }) => when);
  expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
  const snapshots = entries.map(
    ({ tag }) => read(`${tag.slice(0, 4)}_snapshot.json`) as { id: string; prevId: string },
  );
  expect(snapshots.slice(1).map(({ prevId }) => prevId)).toEqual(snapshots.slice(0, -1).map(({ id }) => id));
});
