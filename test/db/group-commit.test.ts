import { expect, test } from 'vitest';
import { GroupCommit } from '../../src/db/group-commit.ts';

const megabyte = 1024 * 1024;

interface Item {
  name: string;
  size: number;
  key?: string;
}

/** Submits all at once, and answers the groups that they went in. */
async function groupsOf(items: readonly Item[]): Promise<string[]> {
  const groups: string[] = [];
  const group = new GroupCommit({
    apply: async (together: readonly Item[]) => {
      groups.push(together.map(({ name }) => name).join(''));
      return together.map(({ name }) => name);
    },
    keysOf: ({ key }) => (key === undefined ? [] : [key]),
    sizeOf: ({ size }) => size,
    maxItems: 5,
  });
  expect(await Promise.all(items.map((item) => group.submit(item)))).toEqual(items.map(({ name }) => name));
  await group.drained();
  return groups;
}

test('what arrives together goes together, as many as a group may have', async () => {
  const items = Array.from('abcdefgh', (name) => ({ name, size: 10 }));
  expect(await groupsOf(items)).toEqual(['abcde', 'fgh']);
});

test('a group holds 8 MiB at most, but for an item that alone is more', async () => {
  const items = [3, 4, 2, 1, 20, 8, 0].map((size, i) => ({
    name: 'abcdefg'.charAt(i),
    size: size * megabyte,
  }));
  expect(await groupsOf(items)).toEqual(['ab', 'cd', 'e', 'fg']);
});

test('nothing passes an item that has no room, and only others one whose key has to wait', async () => {
  const items = [
    { name: 'a', size: 5 * megabyte, key: 'k' },
    { name: 'b', size: 1, key: 'k' },
    { name: 'c', size: 1 },
    { name: 'd', size: 5 * megabyte },
    { name: 'e', size: 1 },
  ];
  expect(await groupsOf(items)).toEqual(['ac', 'bde']);
});
