import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import type { ReportResultInput, SpawnTaskInput } from '../../src/result/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
let split: Assignment;
let run: string;
beforeEach(async () => {
  plane = await ControlPlane.start();
  for (const name of ['split', 'page', 'merge']) await plane.agent(name);
  await plane.job('book', ['split', { name: 'merge', agent: 'merge', dependsOn: ['split'] }]);
  run = await plane.launch('book');
  split = await claimOne('split');
});
afterEach(() => plane.stop());

const claimOne = async (agent: string): Promise<Assignment> => {
  const [task] = await plane.claim([agent], 1);
  if (!task) throw new Error(`nothing to claim for ${agent}`);
  return task;
};
const page = (more: Partial<SpawnTaskInput> = {}): SpawnTaskInput => ({
  step: 'page',
  agent: 'page',
  ...more,
});
const complete = (
  task: Assignment,
  spawn?: SpawnTaskInput[],
  more: Omit<Partial<ReportResultInput>, 'attemptId' | 'leaseToken'> = {},
) => plane.report(task, { status: 'COMPLETED', ...(spawn && { spawn }), ...more });
const spawnedTasks = async (): Promise<number> =>
  (await plane.rows('select id from runplane.tasks where parent_task_id is not null')).length;

describe('a result that is repeated', () => {
  test('spawns once, and with another spawn is a conflict', async () => {
    const spawn = [page({ input: { a: 1, b: 2 } }), page()];
    expect(await complete(split, spawn)).toMatchObject({ outcome: 'APPLIED' });
    expect(await complete(split, [page({ input: { b: 2, a: 1 } }), page()])).toMatchObject({
      outcome: 'REPLAYED',
    });
    for (const other of [[page({ input: { a: 1, b: 3 } }), page()], [page()], []])
      expect(await complete(split, other)).toMatchObject({ kind: 'ResultConflict' });
    expect(await spawnedTasks()).toBe(2);
  });

  test('twice at the same time spawns once', async () => {
    const results = [1, 2].map(() => ({
      ...plane.credentials(split),
      status: 'COMPLETED' as const,
      spawn: [page()],
    }));
    const outcomes = await plane.services.results.reportResults(results);
    expect(outcomes).toMatchObject([{ outcome: 'APPLIED' }, { outcome: 'REPLAYED' }]);
    expect(await spawnedTasks()).toBe(1);
  });
});

describe('a late result', () => {
  test('of a lost attempt spawns when it is applied, and a newer attempt adds nothing', async () => {
    await plane.expire(split);
    await plane.sweep(split);
    const again = await claimOne('split');
    expect(await complete(split, [page()])).toMatchObject({ outcome: 'APPLIED', taskStatus: 'COMPLETED' });
    expect(await complete(again, [page(), page()])).toMatchObject({ outcome: 'SUPERSEDED' });
    expect(await complete(split, [page()])).toMatchObject({ outcome: 'REPLAYED' });
    expect(await spawnedTasks()).toBe(1);
    expect(await plane.steps(run)).toEqual({ split: 'COMPLETED', merge: 'BLOCKED', page: 'ENQUEUED' });
  });

  test('that comes after the newer one spawns nothing', async () => {
    await plane.expire(split);
    await plane.sweep(split);
    await complete(await claimOne('split'));
    expect(await complete(split, [page()])).toMatchObject({ outcome: 'SUPERSEDED' });
    expect(await spawnedTasks()).toBe(0);
    expect(await plane.steps(run)).toEqual({ split: 'COMPLETED', merge: 'ENQUEUED' });
  });
});

describe('a cancel', () => {
  test('of the task or its run lets the work that is done stand, but spawn nothing', async () => {
    await plane.services.actions.cancelTask({ taskId: split.taskId }, actor);
    expect(await complete(split, [page()])).toMatchObject({ outcome: 'APPLIED', taskStatus: 'COMPLETED' });
    expect(await plane.steps(run)).toEqual({ split: 'COMPLETED', merge: 'ENQUEUED' });

    const other = await plane.launch('book');
    const task = await claimOne('split');
    await plane.services.actions.cancelRun({ runId: other }, actor);
    expect(await complete(task, [page()])).toMatchObject({ taskStatus: 'COMPLETED' });
    expect(await plane.run(other)).toEqual({ status: 'CANCELLED', openTasks: 0 });
    expect(await spawnedTasks()).toBe(0);
  });

  test('of a run in the middle of a fan-out starts none of the 1,000 after it committed', async () => {
    await complete(
      split,
      Array.from({ length: 1000 }, (_, i) => page({ input: { i }, optional: i % 2 === 0 })),
    );
    const started = await plane.claim(['page'], 30);
    let over = false;
    const claimer = async (): Promise<Assignment[]> => {
      const claimed: Assignment[] = [];
      while (!over) claimed.push(...(await plane.claim(['page', 'merge'], 10)));
      return claimed;
    };
    const claimers = [claimer(), claimer(), claimer()];
    await plane.services.actions.cancelRun({ runId: run }, actor);
    const [committed] = await plane.rows<{ at: Date }>('select runplane.clock() as at');
    expect(await plane.claim(['page', 'merge'])).toEqual([]);
    over = true;
    started.push(...(await Promise.all(claimers)).flat());
    expect(
      await plane.rows('select attempt_id from runplane.leases where started_at > $1', [committed?.at]),
    ).toEqual([]);
    // What they would have spawned does not come to be, and what failed is not tried again.
    for (const [i, task] of started.entries())
      await (i % 2 === 0
        ? complete(task, [page()])
        : plane.report(task, { status: 'FAILED', error: { code: 'AGAIN' } }));
    expect(await spawnedTasks()).toBe(1000);
    expect(await plane.run(run)).toEqual({ status: 'CANCELLED', openTasks: 0 });
  });

  test('of one spawned task fails what waits for the tree', async () => {
    await complete(split, [page(), page()]);
    const [waiting] = await plane.rows<{ id: string }>(
      `select id from runplane.tasks where step = 'page' order by id limit 1`,
    );
    await plane.services.actions.cancelTask({ taskId: waiting?.id ?? '' }, actor);
    await complete(await claimOne('page'));
    expect(await plane.steps(run)).toMatchObject({ merge: 'FAILED' });
    expect(await plane.run(run)).toMatchObject({ status: 'FAILED' });
  });
});

describe('a spawn that is impossible', () => {
  const many = (n: number) => Array.from({ length: n }, (_, i) => ({ key: `k${i}`, value: '' }));
  const refused: [string, SpawnTaskInput[], string, string][] = [
    ['names an unknown agent', [page(), page({ agent: 'nobody' })], 'spawn[1].agent', 'nobody'],
    ['has a blank step', [page({ step: ' ' })], 'spawn[0].step', 'blank'],
    ['has more than 1,000 tasks', Array.from({ length: 1001 }, () => page()), 'spawn', '1000'],
    ['depends on a step twice', [page({ dependsOn: ['a', 'a'] })], 'spawn[0].dependsOn', 'twice'],
    ['depends on no step of run or spawn', [page({ dependsOn: ['x'] })], 'spawn[0].dependsOn', '"x"'],
    ['waits for itself', [page({ dependsOn: ['page'] })], 'spawn[0].dependsOn', 'page -> page'],
    ['waits for what is above it', [page({ dependsOn: ['split'] })], 'spawn[0].dependsOn', 'split -> split'],
    ['waits for what waits for it', [page({ dependsOn: ['merge'] })], 'spawn[0].dependsOn', 'circle'],
    [
      'waits in a circle',
      [page(), page({ step: 'x', dependsOn: ['y'] }), page({ step: 'y', dependsOn: ['page', 'x'] })],
      'spawn[1].dependsOn',
      'circle',
    ],
    ['has a priority out of range', [page({ priority: 1001 })], 'spawn[0].priority', '1000'],
    ['has no attempts', [page({ maxAttempts: 0 })], 'spawn[0].maxAttempts', '1'],
    ['has a negative estimate', [page({ estimatedTokens: -1 })], 'spawn[0].estimatedTokens', '0'],
    ['has a wrong label', [page({ labels: [{ key: '', value: '' }] })], 'spawn[0].labels[0].key', 'blank'],
    ['has too many labels', [page({ labels: many(33) })], 'spawn[0].labels', '32'],
    ['has an input that cannot be stored', [page({ input: Number.NaN })], 'spawn[0].input', 'finite'],
  ];
  test.each(refused)(
    'because it %s is refused whole, and the worker may report again',
    async (_, spawn, field, words) => {
      expect(await complete(split, spawn)).toMatchObject({
        kind: 'InvalidInput',
        field,
        message: expect.stringContaining(words),
      });
      expect(await plane.steps(run)).toEqual({ split: 'PROCESSING', merge: 'BLOCKED' });
      // Nor is the run one with spawned tasks, whose steps are counted.
      expect(await plane.rows('select step from runplane.run_steps')).toEqual([]);
      expect(await plane.rows('select id from runplane.runs where has_spawned')).toEqual([]);
      expect(await complete(split, [page()])).toMatchObject({ outcome: 'APPLIED' });
    },
  );

  test('harms no other result that comes with it', async () => {
    const other = await plane.launch('book').then(() => claimOne('split'));
    const outcomes = await plane.services.results.reportResults([
      { ...plane.credentials(split), status: 'COMPLETED', spawn: [page({ agent: 'nobody' })] },
      { ...plane.credentials(other), status: 'COMPLETED', spawn: [page()] },
    ]);
    expect(outcomes).toMatchObject([{ kind: 'InvalidInput' }, { outcome: 'APPLIED' }]);
    expect(await plane.steps(run)).toEqual({ split: 'PROCESSING', merge: 'BLOCKED' });
  });

  test('because the result is no completion is refused', async () => {
    for (const status of ['FAILED', 'CANCELLED', 'RELEASED'] as const) {
      const outcome = await plane.report(split, { status, spawn: [page()] });
      expect(outcome).toMatchObject({
        kind: 'InvalidInput',
        field: 'spawn',
        message: expect.stringContaining(status),
      });
    }
  });

  test('because the run would have more than 100,000 tasks is refused; exactly as many are not', async () => {
    const setTotal = (n: number) =>
      plane.rows('update runplane.runs set total_tasks = $2 where id = $1', [run, n]);
    await setTotal(99_999);
    expect(await complete(split, [page(), page()])).toMatchObject({
      kind: 'InvalidInput',
      field: 'spawn',
      message: expect.stringContaining('100000'),
    });
    expect(await spawnedTasks()).toBe(0);
    expect(await complete(split, [page()])).toMatchObject({ outcome: 'APPLIED' });
    await setTotal(3);
  });

  test('because a task that depends on its step ran already is refused', async () => {
    await plane.job('joined', [
      { name: 'split', agent: 'split' },
      { name: 'page', agent: 'page' },
      { name: 'merge', agent: 'merge', dependsOn: ['page'] },
    ]);
    await plane.launch('joined');
    const task = await claimOne('split');
    await complete(await claimOne('page'));
    expect(await complete(task, [page()])).toMatchObject({
      kind: 'InvalidInput',
      field: 'spawn[0].step',
      message: expect.stringContaining('ran already'),
    });
    expect(await complete(task, [page({ step: 'another' })])).toMatchObject({ outcome: 'APPLIED' });
  });

  test('because its steps are too deep is refused', async () => {
    let task = split;
    for (let depth = 1; depth < 100; depth++) {
      await complete(task, [page({ step: `s${depth}` })]);
      task = await claimOne('page');
    }
    expect(await complete(task, [page({ step: 'one more' })])).toMatchObject({
      kind: 'InvalidInput',
      field: 'spawn[0].step',
      message: expect.stringContaining('100'),
    });
    expect(await complete(task, [page({ step: 's7' })])).toMatchObject({ outcome: 'APPLIED' });
  });
});

test('text of models in the input of a spawned task is repaired, and the attempt says so', async () => {
  await complete(split, [page({ input: { text: 'a\u0000b' } })]);
  expect((await claimOne('page')).input).toEqual({ text: 'a\uFFFDb' });
  expect(await plane.rows('select sanitized from runplane.attempts')).toEqual([{ sanitized: true }]);
});
