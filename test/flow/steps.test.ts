import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { JobStepInput } from '../../src/operator/types.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  for (const name of ['a', 'b', 'c', 'd']) await plane.agent(name);
});
afterEach(() => plane.stop());

const agents = ['a', 'b', 'c', 'd'];
const step = (name: string, dependsOn: string[], more: Partial<JobStepInput> = {}): JobStepInput => ({
  name,
  agent: name,
  dependsOn,
  ...more,
});

/** Claims everything that is ready and ends it; answers the steps that ran. */
async function round(status: Record<string, 'COMPLETED' | 'FAILED'> = {}): Promise<string[]> {
  const claimed = await plane.claim(agents);
  for (const task of claimed) {
    const ends = status[task.step] ?? 'COMPLETED';
    await plane.report(
      task,
      ends === 'COMPLETED'
        ? { status: ends, output: { from: task.step } }
        : { status: ends, error: { code: 'NO', kind: 'PERMANENT' } },
    );
  }
  return claimed.map((task) => task.step).sort();
}

test('a diamond runs in the order of its dependencies, the join once', async () => {
  await plane.job('diamond', [step('a', []), step('b', ['a']), step('c', ['a']), step('d', ['b', 'c'])]);
  const run = await plane.launch('diamond');
  expect(await plane.steps(run)).toEqual({ a: 'ENQUEUED', b: 'BLOCKED', c: 'BLOCKED', d: 'BLOCKED' });
  expect(await round()).toEqual(['a']);
  expect(await round()).toEqual(['b', 'c']);
  expect(await round()).toEqual(['d']);
  expect(await plane.run(run)).toEqual({ status: 'COMPLETED', openTasks: 0 });
});

test('both dependencies of a join may end in the same group', async () => {
  await plane.job('join', [step('a', []), step('b', []), step('c', ['a', 'b'])]);
  await plane.launch('join');
  const claimed = await plane.claim(agents);
  await plane.services.results.reportResults(
    claimed.map((task) => ({ ...plane.credentials(task), status: 'COMPLETED' as const })),
  );
  expect(await round()).toEqual(['c']);
});

test('templates see config, run, event and what earlier steps gave', async () => {
  await plane.job('templates', [
    step('a', [], { input: { x: { $eval: 'config.x' } } }),
    step('b', ['a'], {
      input: {
        from: { $eval: 'steps.a.output.from' },
        status: { $eval: 'steps.a.status' },
        who: { $eval: 'run.customer' },
      },
    }),
  ]);
  await plane.launch('templates', { config: { x: [1, 'é'] }, customer: 'acme' });
  const [a] = await plane.claim(['a']);
  expect(a?.input).toEqual({ x: [1, 'é'] });
  await plane.report(a as never, { status: 'COMPLETED', output: { from: 'a' } });
  const [b] = await plane.claim(['b']);
  expect(b?.input).toEqual({ from: 'a', status: 'COMPLETED', who: 'acme' });
});

test('a template that fails for this config refuses the launch, or fails its later step', async () => {
  await plane.job('early', [step('a', [], { input: { x: { $eval: 'config.missing.deep' } } })]);
  const [refused] = await plane.services.intake.launchRuns([{ job: 'early' }]);
  expect(refused).toMatchObject({
    kind: 'InvalidInput',
    field: 'config',
    message:
      'The input template of step a failed for this config: object has no property "missing" (at input.x)',
  });
  await plane.job('late', [
    step('a', []),
    step('b', ['a'], { input: { x: { $eval: 'steps.a.output.missing.deep' } } }),
    step('c', ['b']),
  ]);
  const run = await plane.launch('late');
  await round();
  expect(await plane.steps(run)).toEqual({ a: 'COMPLETED', b: 'FAILED', c: 'FAILED' });
  expect(await plane.run(run)).toMatchObject({ status: 'FAILED' });
  expect(
    await plane.rows(
      'select step, error_code, error_message from runplane.tasks where error_code is not null order by step',
    ),
  ).toMatchObject([
    {
      step: 'b',
      error_code: 'INPUT_TEMPLATE_FAILED',
      error_message: expect.stringContaining('object has no property "missing" (at input.x)'),
    },
    { step: 'c', error_code: 'DEPENDENCY_FAILED' },
  ]);
});

describe('when a step fails', () => {
  test('the steps after it fail, independent branches go on, the run fails when all is over', async () => {
    await plane.job('branches', [step('a', []), step('b', ['a']), step('c', []), step('d', ['c'])]);
    const run = await plane.launch('branches');
    await round({ a: 'FAILED' });
    expect(await plane.steps(run)).toEqual({ a: 'FAILED', b: 'FAILED', c: 'COMPLETED', d: 'ENQUEUED' });
    expect(await plane.run(run)).toMatchObject({ status: 'RUNNING' });
    await round();
    expect(await plane.run(run)).toMatchObject({ status: 'FAILED' });
    expect(
      await plane.rows('select t.step from runplane.runs r join runplane.tasks t on t.id = r.failed_task_id'),
    ).toEqual([{ step: 'a' }]);
    expect(await plane.rows('select count(*)::int as letters from runplane.dead_letters')).toEqual([
      { letters: 1 },
    ]);
  });

  test('a step that waits for its dependencies however they end runs all the same', async () => {
    await plane.job('cleanup', [step('a', []), step('b', ['a'], { when: 'DEPENDENCIES_FINISHED' })]);
    const run = await plane.launch('cleanup');
    await round({ a: 'FAILED' });
    expect(await round()).toEqual(['b']);
    expect(await plane.run(run)).toMatchObject({ status: 'FAILED' });
  });

  test('an optional one fails neither its dependents nor the run, and leaves a dead letter', async () => {
    await plane.job('optional', [step('a', [], { optional: true }), step('b', ['a'])]);
    const run = await plane.launch('optional');
    await round({ a: 'FAILED' });
    expect(await round()).toEqual(['b']);
    expect(await plane.run(run)).toMatchObject({ status: 'COMPLETED' });
    expect(await plane.rows('select count(*)::int as letters from runplane.dead_letters')).toEqual([
      { letters: 1 },
    ]);
  });
});

test('tasks of one agent and serial key run one at a time, in order', async () => {
  await plane.job('serial', ['a']);
  for (const n of [1, 2, 3]) await plane.launch('serial', { serialKey: 'k', config: { n } });
  await plane.launch('serial', { serialKey: 'other', config: { n: 9 } });
  const first = await plane.claim(['a']);
  expect(first.map((task) => task.input)).toEqual([{ n: 1 }, { n: 9 }]);
  expect(await plane.claim(['a'])).toEqual([]);
  // A failed head keeps its place and blocks its key.
  await plane.report(first[0] as never, { status: 'FAILED', error: { code: 'AGAIN' } });
  const again = await plane.claim(['a']);
  expect(again.map((task) => [task.input, task.number])).toEqual([[{ n: 1 }, 2]]);
  await plane.report(again[0] as never, { status: 'COMPLETED' });
  expect((await plane.claim(['a'])).map((task) => task.input)).toEqual([{ n: 2 }]);
});
