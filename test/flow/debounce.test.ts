import { beforeEach, describe, expect, test } from 'vitest';
import { at } from '../support/clock.ts';
import { actor } from '../support/control-plane.ts';
import { type DebouncedInput, debounced, runIdOf } from '../support/debounced.ts';

const story = debounced();
const { launchAll, launch, runs, time, move } = story;
beforeEach(() => story.plane.agent('b'));

describe('launches with one debounce key', () => {
  test('are one run with the newest config, which starts seconds after the newest', async () => {
    await time(0);
    const first = await launch({ config: { n: 1 } });
    await time(40);
    const second = await launch({ config: { n: 2 } });
    expect(second).toMatchObject({ kind: 'LaunchRunSuccess', runId: runIdOf(first), replayed: false });
    expect(second).toMatchObject({ cursor: (first as { cursor: string }).cursor });
    expect(await runs()).toEqual([{ id: runIdOf(first), config: { n: 2 }, starts: at(100), key: 'k' }]);
    await time(99.999);
    await move();
    expect(await story.plane.claim(['a'])).toEqual([]);
    await time(100);
    await move();
    expect((await story.plane.claim(['a'])).map((task) => task.input)).toEqual([{ n: 2 }]);
    expect(await story.plane.rows('select to_status from runplane.change_log order by id')).toEqual(
      ['QUEUED', 'ENQUEUED', 'RUNNING', 'PROCESSING'].map((to_status) => ({ to_status })),
    );
  });

  test('start at most maxSeconds after the first, however many follow', async () => {
    for (const [seconds, starts] of [
      [0, 60],
      [50, 110],
      [100, 150],
      [149, 150],
      [170, 170],
    ] as const) {
      await time(seconds);
      await launch({ debounce: { maxSeconds: 150 } });
      expect((await runs()).map((run) => run.starts)).toEqual([at(starts)]);
    }
    await move();
    expect(await story.plane.claim(['a'])).toHaveLength(1);
  });

  test('are other runs in another job, with another key, or without one', async () => {
    await story.plane.job('two', ['a']);
    await launchAll([{}, { job: 'two' }, { debounce: { key: 'other' } }, {}]);
    await story.plane.launch('one');
    expect(await runs()).toHaveLength(4);
  });

  test('move all first steps together, with inputs rendered anew, and all that the newest says', async () => {
    const input = { n: { $eval: 'config.n' }, run: { $eval: 'run.id' }, who: { $eval: 'run.customer' } };
    await story.plane.job('wide', [
      { name: 'x', agent: 'a', input },
      { name: 'y', agent: 'b' },
      { name: 'z', agent: 'a', dependsOn: ['x', 'y'], input },
    ]);
    await time(0);
    const wide = { job: 'wide', customer: 'old', labels: [{ key: 'l', value: '1' }] };
    const run = await launch({ ...wide, config: { n: 1 }, priority: 5, serialKey: 's' });
    await time(10);
    await launch({
      job: 'wide',
      config: { n: 2 },
      customer: 'new',
      priority: 7,
      idempotencyKey: 'i',
      steps: [{ step: 'y', priority: 9, maxAttempts: 4, estimatedTokens: 70, serialKey: 't' }],
    });
    expect(
      await story.plane.rows(
        'select customer, labels, priority, serial_key, idempotency_key from runplane.runs',
      ),
    ).toEqual([{ customer: 'new', labels: {}, priority: 7, serial_key: null, idempotency_key: 'i' }]);
    expect(
      await story.plane.rows(
        `select step, priority, serial_key as serial, max_attempts as attempts, estimated_tokens as tokens,
                available_at as at, (select d.available_at from runplane.delayed_tasks d where d.task_id = t.id) as delayed
           from runplane.tasks t order by id`,
      ),
    ).toEqual([
      { step: 'x', priority: 7, serial: null, attempts: null, tokens: null, at: at(70), delayed: at(70) },
      { step: 'y', priority: 9, serial: 't', attempts: 4, tokens: 70, at: at(70), delayed: at(70) },
      { step: 'z', priority: 7, serial: null, attempts: null, tokens: null, at: at(70), delayed: null },
    ]);
    await time(70);
    await move();
    const rendered = { n: 2, run: expect.stringMatching(/^run_/), who: 'new' };
    const claimed = await story.plane.claim(['a', 'b']);
    expect(claimed.map((task) => task.input)).toEqual([{ n: 2 }, rendered]);
    for (const task of claimed) await story.plane.report(task, { status: 'COMPLETED' });
    const [last] = await story.plane.claim(['a']);
    expect(last?.input).toEqual(rendered);
    expect(last?.runId).toBe(runIdOf(run));
  });

  test('make a new run once the first was made ready, claimed or cancelled', async () => {
    await time(0);
    const ready = runIdOf(await launch());
    await time(60);
    expect(runIdOf(await launch({ debounce: { maxSeconds: 60 } }))).toBe(ready);
    await move();
    const second = runIdOf(await launch());
    expect(second).not.toBe(ready);
    expect(await story.plane.claim(['a'])).toHaveLength(1);
    expect(runIdOf(await launch())).toBe(second);
    await story.plane.services.actions.cancelRun({ runId: second, reason: null }, actor);
    const third = runIdOf(await launch());
    expect(third).not.toBe(second);
    expect(runIdOf(await launch())).toBe(third);
    expect((await story.plane.run(ready)).status).toBe('RUNNING');
    expect((await story.plane.run(second)).status).toBe('CANCELLED');
  });

  test('keep the version of the job and are checked by its schema', async () => {
    const input = { v: 1, n: { $eval: 'config.n' } };
    await story.plane.job('typed', [{ name: 'a', agent: 'a', input }], { required: ['n'] });
    await time(0);
    const run = runIdOf(await launch({ job: 'typed', config: { n: 1 } }));
    await story.plane.job('typed', ['b'], { required: ['m'] });
    expect(await launch({ job: 'typed', config: { m: 2 } })).toMatchObject({
      kind: 'RunConfigValidationInvalid',
    });
    expect(runIdOf(await launch({ job: 'typed', config: { n: 2 } }))).toBe(run);
    await time(60);
    await move();
    expect((await story.plane.claim(['a', 'b'])).map((task) => task.input)).toEqual([{ v: 1, n: 2 }]);
    expect(runIdOf(await launch({ job: 'typed', config: { m: 2 } }))).not.toBe(run);
  });
});

describe('idempotency keys of debounced launches', () => {
  test('point at the run that was kept: a repeat of any changes nothing', async () => {
    await time(0);
    const [first, second] = [
      { config: { n: 1 }, idempotencyKey: 'i1' },
      { config: { n: 2 }, idempotencyKey: 'i2' },
    ];
    const made = await launch(first);
    const kept = await launch(second);
    await time(30);
    for (const [input, before] of [
      [first, made],
      [second, kept],
    ] as const)
      expect(await launch(input)).toEqual({ ...before, joined: undefined, replayed: true });
    expect(await runs()).toEqual([{ id: runIdOf(made), config: { n: 2 }, starts: at(60), key: 'k' }]);
    expect(await launch({ ...first, debounce: { seconds: 61 } })).toMatchObject({
      kind: 'IdempotencyConflict',
      existingId: runIdOf(made),
    });
  });

  test('of refused launches are not remembered', async () => {
    await story.plane.job('strict', ['a'], { required: ['n'] });
    expect(await launch({ job: 'strict', idempotencyKey: 'i' })).toMatchObject({
      kind: 'RunConfigValidationInvalid',
    });
    runIdOf(await launch({ job: 'strict', idempotencyKey: 'i', config: { n: 1 } }));
  });
});

test.each<[DebouncedInput, string]>([
  [{ debounce: { key: '' } }, 'debounce.key'],
  [{ debounce: { key: 'é'.repeat(101) } }, 'debounce.key'],
  [{ debounce: { seconds: 0 } }, 'debounce.seconds'],
  [{ debounce: { seconds: 86_400.5 } }, 'debounce.seconds'],
  [{ debounce: { seconds: Number.NaN } }, 'debounce.seconds'],
  [{ debounce: { seconds: 2, maxSeconds: 1 } }, 'debounce.maxSeconds'],
  [{ debounce: { maxSeconds: 604_801 } }, 'debounce.maxSeconds'],
  [{ availableAt: new Date() }, 'availableAt'],
])('%j is refused, naming %s', async (input, field) => {
  expect(await launch(input)).toMatchObject({ kind: 'InvalidInput', field });
  expect(await runs()).toEqual([]);
});

test('keys that are no longer in use are forgotten', async () => {
  const keys = Array.from({ length: 20 }, (_, i) => ({ debounce: { key: `k${i}` } }));
  await time(0);
  await launchAll(keys);
  await time(61);
  await move();
  for (let i = 0; i < 10; i++) await launch({ debounce: { key: 'live' } });
  expect(await story.plane.rows('select debounce_key as key from runplane.debounces')).toEqual([
    { key: 'live' },
  ]);
});
