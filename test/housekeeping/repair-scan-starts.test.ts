import { expect, test } from 'vitest';
import { repaired } from '../support/repaired.ts';

const story = repaired();
const { keepHouse, complete } = story;

const far = 2 ** 40;

test('what is before the place where claims begin to look is found again, and counted', async () => {
  const { plane } = story;
  await plane.agent('a', { maxConcurrentTasks: 1 });
  const runs = [await plane.launch('one'), await plane.launch('one')];
  const [first] = await plane.claim(['a']);
  expect(first?.runId).toBe(runs[0]);
  expect(await keepHouse()).toEqual({});

  await plane.rows(`update runplane.scan_starts set lease_from = ${far}`);
  expect(await keepHouse()).toEqual({ scanStarts: 1 });
  expect(await plane.claim(['a'])).toEqual([]);

  await plane.report(first as never, { status: 'COMPLETED' });
  await plane.rows(`update runplane.scan_starts set priority_key = 0, turn = ${far}, rank = 0`);
  expect(await plane.claim(['a'])).toEqual([]);
  expect(await keepHouse()).toEqual({ scanStarts: 1 });
  await complete();
  for (const run of runs) expect((await plane.run(run)).status).toBe('COMPLETED');
});
