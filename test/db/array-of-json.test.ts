import { expect, test } from 'vitest';
import { arrayOfJson } from '../../src/db/array-of-json.ts';
import { createTestDatabase } from '../support/database.ts';

test('Postgres reads an array of JSON as it was given, whatever letters are in it', async () => {
  const database = await createTestDatabase();
  const values = [
    'NULL',
    null,
    '{"a", b}',
    '',
    [],
    { 'k"\\': ['\n\t\b\u0001\u007f\u2028', '\\u0041', '😀', "'", '$1', -0.5, 1e-7, true] },
  ];
  for (const given of [values, []]) {
    const { rows } = await database.db.query({
      text: 'select to_json($1::jsonb[]) as read',
      values: [arrayOfJson(given)],
    });
    expect(rows).toEqual([{ read: given }]);
  }
  const { rows } = await database.db.query({
    text: 'select count(x) as present from unnest($1::jsonb[]) x',
    values: [arrayOfJson(values)],
  });
  expect(rows).toEqual([{ present: values.length }]);
  await database.drop();
});

// Quote by quote it would need more memory than a process has.
test('ten of the largest results, all quotes, become an array', () => {
  const largest = '"'.repeat(4_000_000);
  expect(arrayOfJson(Array.from({ length: 10 }, () => largest))).toHaveLength(
    10 * (4 * largest.length + 6) + 11,
  );
});
