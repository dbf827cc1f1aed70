import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { transaction } from '../../src/db/transaction.ts';
import type { JobStepInput } from '../../src/operator/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  for (const name of ['a', 'b', 'c']) await plane.agent(name);
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

const step = (name: string, dependsOn: string[], more: Partial<JobStepInput> = {}): JobStepInput => ({
  name,
  agent: name,
  dependsOn,
  ...more,
});
const taskOf = async (runId: string, name = 'a'): Promise<string> => {
  const [task] = await plane.rows<{ id: string }>(
    'select id from runplane.tasks where run_id = $1 and step = $2',
    [runId, name],
  );
  return task?.id ?? '';
};
const failAll = async (agents = ['a', 'b', 'c']) => {
  for (const task of await plane.claim(agents))
    await plane.report(task, { status: 'FAILED', error: { code: 'NO', kind: 'PERMANENT' } });
};
const completeAll = async () => {
  for (const task of await plane.claim(['a', 'b', 'c'])) await plane.report(task, { status: 'COMPLETED' });
};
const retry = (taskId: string, priority?: number) =>
  plane.services.actions.retryTask({ taskId, priority }, actor);
const letters = () =>
  plane.rows('select fail_count, replayed_at is not null as replayed from runplane.dead_letters');

describe('a failed task that is retried', () => {
  test('runs again on the same row, before others, with fresh attempts and a run that goes on', async () => {
    const run = await plane.launch('one');
    await failAll();
    expect(await plane.run(run)).toMatchObject({ status: 'FAILED' });
    const other = await plane.launch('one');
    expect(await retry(await taskOf(run))).toMatchObject({
      kind: 'TaskActionSuccess',
      taskStatus: 'ENQUEUED',
    });
    expect(await plane.run(run)).toEqual({ status: 'RUNNING', openTasks: 1 });
    expect(await letters()).toEqual([{ fail_count: 1, replayed: true }]);
    const claimed = await plane.claim(['a']);
    expect(claimed.map((task) => [task.runId, task.number])).toEqual([
      [run, 2],
      [other, 1],
    ]);
    for (const task of claimed) await plane.report(task, { status: 'COMPLETED', output: 'ok' });
    expect(await plane.run(run)).toMatchObject({ status: 'COMPLETED' });
    expect(await plane.rows('select priority from runplane.tasks order by id')).toEqual([
      { priority: 100 },
      { priority: 0 },
    ]);
    expect(
      await plane.rows(`select action from runplane.audit_entries where action = 'task.retry'`),
    ).toHaveLength(1);
  });

  test('has all its attempts again, and failing again makes the same dead letter grow', async () => {
    await plane.launch('one').then(taskOf);
    const fail = async () => {
      const [task] = await plane.claim(['a']);
      return plane.report(task as never, { status: 'FAILED', error: { code: 'AGAIN' } });
    };
    for (let i = 0; i < 3; i++) await fail();
    const [letter] = await plane.rows<{ id: string }>('select id from runplane.dead_letters');
    expect(await plane.services.actions.replayDeadLetter({ id: letter?.id ?? '' }, actor)).toMatchObject({
      taskStatus: 'ENQUEUED',
    });
    expect(await fail()).toMatchObject({ taskStatus: 'ENQUEUED' });
    expect(await fail()).toMatchObject({ taskStatus: 'ENQUEUED' });
    expect(await fail()).toMatchObject({ taskStatus: 'FAILED' });
    expect(await letters()).toEqual([{ fail_count: 2, replayed: false }]);
  });

  test('takes the steps with it that failed because of it', async () => {
    await plane.job('chain', [step('a', []), step('b', ['a']), step('c', ['b'])]);
    const run = await plane.launch('chain');
    await failAll();
    expect(await plane.steps(run)).toEqual({ a: 'FAILED', b: 'FAILED', c: 'FAILED' });
    expect(await retry(await taskOf(run, 'b'))).toMatchObject({
      kind: 'IllegalState',
      message: expect.stringContaining('step a'),
    });
    await retry(await taskOf(run, 'a'));
    expect(await plane.steps(run)).toEqual({ a: 'ENQUEUED', b: 'BLOCKED', c: 'BLOCKED' });
    for (let i = 0; i < 3; i++) await completeAll();
    expect(await plane.run(run)).toMatchObject({ status: 'COMPLETED' });
  });

  test('keeps the order of its serial key', async () => {
    const first = await plane.launch('one', { serialKey: 'k' });
    await failAll();
    const second = await plane.launch('one', { serialKey: 'k' });
    await retry(await taskOf(first));
    expect((await plane.claim(['a'])).map((task) => task.runId)).toEqual([second]);
    expect(await plane.claim(['a'])).toEqual([]);
  });
});

describe('a step that was cancelled while it waited for others', () => {
  const template = { got: { $eval: 'steps.a.output.x' } };
  const cancelWaiting = async (): Promise<string> => {
    await plane.job('two', [step('a', []), step('b', ['a'], { input: template })]);
    const run = await plane.launch('two', { config: { of: 'the run' } });
    await plane.services.actions.cancelTask({ taskId: await taskOf(run, 'b') }, actor);
    return run;
  };
  const complete = async (output: unknown) => {
    for (const task of await plane.claim(['a'])) await plane.report(task, { status: 'COMPLETED', output });
  };

  test('gets its input when it is retried after these completed', async () => {
    const run = await cancelWaiting();
    await complete({ x: 7 });
    expect(await retry(await taskOf(run, 'b'))).toMatchObject({ taskStatus: 'ENQUEUED' });
    expect((await plane.claim(['b'])).map(({ input }) => input)).toEqual([{ got: 7 }]);
  });

  test('is not retried when its input cannot be rendered', async () => {
    const run = await cancelWaiting();
    await complete(null);
    expect(await retry(await taskOf(run, 'b'))).toMatchObject({
      kind: 'IllegalState',
      status: 'CANCELLED',
      message: expect.stringContaining('cannot be rendered'),
    });
    const other = await cancelWaiting();
    await complete({ x: 8 });
    expect(await plane.services.actions.retryTasks({ filter: { steps: ['b'] } }, actor)).toMatchObject({
      matched: 2,
      changed: 1,
    });
    expect((await plane.claim(['b'])).map(({ runId, input }) => [runId, input])).toEqual([
      [other, { got: 8 }],
    ]);
  });
});

test('a cancelled task can be retried once its run is over', async () => {
  await plane.job('two', [step('a', []), step('b', [])]);
  const run = await plane.launch('two');
  const [executed] = await plane.claim(['b']);
  await plane.services.actions.cancelRun({ runId: run }, actor);
  const id = await taskOf(run);
  expect(await retry(id)).toMatchObject({
    kind: 'IllegalState',
    message: expect.stringContaining('being cancelled'),
  });
  await plane.report(executed as never, { status: 'CANCELLED' });
  expect(await retry(id, 7)).toMatchObject({ taskStatus: 'ENQUEUED' });
  await completeAll();
  expect(await plane.run(run)).toMatchObject({ status: 'CANCELLED' });
  expect(await plane.rows('select priority, state from runplane.tasks where id = $1', [id])).toEqual([
    { priority: 7, state: 'COMPLETED' },
  ]);
});

test('what is not over, or unknown, or a wrong priority is refused', async () => {
  const run = await plane.launch('one');
  expect(await retry(await taskOf(run))).toMatchObject({ kind: 'IllegalState', status: 'ENQUEUED' });
  expect(await retry(crypto.randomUUID())).toMatchObject({ kind: 'NotFound' });
  expect(await retry(await taskOf(run), 1001)).toMatchObject({ kind: 'InvalidInput', field: 'priority' });
  expect(await plane.services.actions.replayDeadLetter({ id: crypto.randomUUID() }, actor)).toMatchObject({
    kind: 'NotFound',
  });
});

test('of two that retry the same task at the same moment one does, and the other learns that it is not over', async () => {
  const run = await plane.launch('one');
  await failAll();
  const id = await taskOf(run);
  const outcomes = await whileRunIsLocked(run, () => [retry(id), retry(id)]);
  expect(outcomes.map(({ kind }) => kind).sort()).toEqual(['IllegalState', 'TaskActionSuccess']);
  expect(
    await plane.rows(`select action from runplane.audit_entries where action = 'task.retry'`),
  ).toHaveLength(1);
});

/** Lets actions begin, and wait for each other, while the test holds their run. */
async function whileRunIsLocked<Outcome>(runId: string, begin: () => Promise<Outcome>[]): Promise<Outcome[]> {
  const actions = await transaction(plane.database.db, async (tx) => {
    await tx.query({ text: 'select from runplane.runs where id = $1 for update', values: [runId] });
    const begun = begin();
    await plane.untilBlocked(begun.length);
    // In an array, because a promise would be awaited here.
    return [begun];
  });
  return Promise.all(actions.flat());
}

test('many are retried by filter: tasks, or dead letters', async () => {
  await plane.job('chain', [step('a', []), step('b', ['a'])]);
  for (let i = 0; i < 3; i++) await plane.launch('chain', { customer: i === 0 ? 'acme' : 'other' });
  await failAll();
  const { actions } = plane.services;
  expect(await actions.retryTasks({ filter: { customers: ['acme'] } }, actor)).toEqual({
    kind: 'BulkSuccess',
    matched: 2,
    changed: 2,
    hasMore: false,
  });
  expect(
    await actions.replayDeadLetters({ filter: { errorCodes: ['NO'], replayed: false }, dryRun: true }, actor),
  ).toMatchObject({ matched: 2, changed: 0 });
  expect(
    await actions.replayDeadLetters({ filter: { errorCodes: ['NO'], replayed: false } }, actor),
  ).toMatchObject({ matched: 2, changed: 2 });
  expect(await actions.retryTasks({ filter: {} }, actor)).toMatchObject({
    kind: 'InvalidInput',
    field: 'filter',
  });
  await completeAll();
  await completeAll();
  expect(await plane.rows('select distinct status from runplane.runs')).toEqual([{ status: 'COMPLETED' }]);
});
