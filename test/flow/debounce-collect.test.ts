import { expect, test } from 'vitest';
import { at } from '../support/clock.ts';
import { type DebouncedInput, debounced, runIdOf } from '../support/debounced.ts';

const story = debounced();
const { launchAll, launch, runs, time, move } = story;

const collect = { collect: true };
const item = (n: number, more: DebouncedInput = {}): DebouncedInput => ({
  config: { n },
  debounce: { ...collect, ...more.debounce },
  ...more,
});

test('a run that collects gets all configs in order, each of which satisfies the schema', async () => {
  await story.plane.job('one', ['a'], { required: ['n'], properties: { n: { type: 'integer' } } });
  await time(0);
  await launch(item(1));
  const outcomes = await launchAll([item(2), { ...item(3), config: { n: 'x' } }, item(4)]);
  expect(outcomes.map(({ kind }) => kind)).toEqual([
    'LaunchRunSuccess',
    'RunConfigValidationInvalid',
    'LaunchRunSuccess',
  ]);
  await time(60);
  await move();
  expect((await story.plane.claim(['a'])).map((task) => task.input)).toEqual([
    { items: [{ n: 1 }, { n: 2 }, { n: 4 }] },
  ]);
  await launch(item(5));
  expect((await runs()).at(-1)?.config).toEqual({ items: [{ n: 5 }] });
});

test('a run that collects takes no config that would make it larger than a config may be', async () => {
  await time(0);
  const half = 'x'.repeat(512 * 1024);
  const run = runIdOf(await launch({ config: { half }, debounce: collect }));
  await time(10);
  for (const [config, limit] of [
    [{ half }, '1048576'],
    [{ many: Array.from({ length: 99_998 }, () => 0) }, '100000'],
  ] as const) {
    expect(await launch({ config, debounce: collect })).toMatchObject({
      kind: 'InvalidInput',
      field: 'config',
      message: expect.stringContaining(limit),
    });
  }
  const [kept] = await runs();
  expect(kept).toMatchObject({ id: run, starts: at(60) });
  let deep: unknown = 1;
  for (let level = 0; level < 60; level++) deep = [deep];
  expect(runIdOf(await launch({ config: { deep }, debounce: collect }))).toBe(run);
  expect(await launch({ config: { deep: [deep] }, debounce: collect })).toMatchObject({
    field: 'config',
    message: expect.stringContaining('64'),
  });
});

test('a run that collects and one that does not are never mixed', async () => {
  await launch(item(1));
  await launch({ debounce: { key: 'plain' } });
  for (const debounce of [{}, { key: 'plain', collect: true }])
    expect(await launch({ debounce })).toMatchObject({ kind: 'InvalidInput', field: 'debounce.collect' });
  expect((await runs()).map((run) => run.config)).toEqual([{ items: [{ n: 1 }] }, {}]);
});
