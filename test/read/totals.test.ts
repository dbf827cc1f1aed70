import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import { createRead, type Read } from '../../src/read/read.ts';
import type { ModelUsageInput } from '../../src/result/types.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
let read: Read;

beforeAll(async () => {
  plane = await ControlPlane.start();
  read = createRead(plane.database.db);
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterAll(() => plane.stop());

const start = async (): Promise<Assignment> => {
  await plane.launch('one');
  const [task] = await plane.claim(['a'], 1);
  if (!task) throw new Error('nothing to claim');
  return task;
};
const totalsOf = async ({ taskId, attemptId, runId }: Assignment) => ({
  attempt: (await read.totals.ofAttempts([attemptId])).get(attemptId),
  task: (await read.totals.ofTasks([taskId])).get(taskId),
  run: (await read.totals.ofRuns([runId])).get(runId),
});
const complete = async (...usage: ModelUsageInput[]) => {
  const task = await start();
  await plane.report(task, { status: 'COMPLETED', usage });
  return task;
};

test('nothing booked is nothing known, and costs 0', async () => {
  const task = await start();
  const nothing = {
    entries: 0,
    inputTokens: null,
    totalTokens: null,
    llmCost: '0',
    computeCost: '0',
    totalCost: '0',
    unpricedAttempts: 0,
  };
  for (const totals of Object.values(await totalsOf(task))) expect(totals).toMatchObject(nothing);
  await plane.report(task, { status: 'COMPLETED' });
  for (const totals of Object.values(await totalsOf(task))) expect(totals).toMatchObject(nothing);
});

test('a count that no answer told stays null; the total is the sum of those that are known', async () => {
  const task = await complete(
    { inputTokens: 10, cacheWriteTokens: 3, outputTokens: 0, cost: '0.032786' },
    { inputTokens: 5, cacheWrite1hTokens: 4, cost: '0.000000000001' },
  );
  expect((await totalsOf(task)).task).toMatchObject({
    inputTokens: 15,
    cacheReadTokens: null,
    cacheWriteTokens: 7,
    outputTokens: 0,
    reasoningTokens: null,
    totalTokens: 22,
    llmCost: '0.032786000001',
    totalCost: '0.032786000001',
  });
});

test('decimals have no zeros at their end and lose nothing', async () => {
  expect((await totalsOf(await complete({ cost: '1.50' }))).task?.llmCost).toBe('1.5');
  expect((await totalsOf(await complete({ cost: '100' }))).task?.llmCost).toBe('100');
  const exact = await complete({ cost: '0.1' }, { cost: '0.2' }, { cost: '123456789.000000000001' });
  expect((await totalsOf(exact)).run?.llmCost).toBe('123456789.300000000001');
});

test('attempts without a price are told apart, not counted as free', async () => {
  const task = await complete({ model: 'unknown', inputTokens: 1 }, { inputTokens: 1 }, { cost: '2' });
  expect((await totalsOf(task)).task).toMatchObject({ llmCost: '2', unpricedAttempts: 1 });
});

test('a task has what all its attempts used, each attempt its own', async () => {
  const first = await start();
  await plane.report(first, {
    status: 'FAILED',
    error: { code: 'E', message: 'no' },
    usage: [{ inputTokens: 9_700, cost: '1' }],
  });
  const [second] = await plane.claim(['a'], 1);
  if (!second) throw new Error('nothing to claim');
  await plane.report(second, { status: 'COMPLETED', usage: [{ inputTokens: 300, cost: '0.5' }] });
  expect((await totalsOf(first)).attempt).toMatchObject({ inputTokens: 9_700, llmCost: '1' });
  expect((await totalsOf(second)).attempt).toMatchObject({ inputTokens: 300, llmCost: '0.5' });
  const { task, run } = await totalsOf(second);
  expect(task).toMatchObject({ inputTokens: 10_000, llmCost: '1.5' });
  expect(run).toMatchObject({ inputTokens: 10_000, llmCost: '1.5' });
  expect((await read.tasks.attemptCounts([first.taskId])).get(first.taskId)).toMatchObject({
    attemptCount: 2,
    attemptsUsed: 2,
  });
});
