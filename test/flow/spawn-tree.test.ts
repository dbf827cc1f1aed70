import { afterEach, beforeEach, expect, test } from 'vitest';
import { transactionByKey } from '../../src/db/transaction.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { parseReport } from '../../src/result/parse-result.ts';
import { recordEndings } from '../../src/result/record-endings.ts';
import type { SpawnTaskInput } from '../../src/result/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { expectInvariants } from '../support/invariants.ts';
import { count } from '../support/tier.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  for (const name of agents) await plane.agent(name);
  await plane.job('book', ['split', { name: 'merge', agent: 'merge', dependsOn: ['split'] }]);
});
afterEach(() => plane.stop(), 600_000);

const agents = ['split', 'page', 'line', 'merge'];
const spawned = (name: string, n: number): SpawnTaskInput[] =>
  Array.from({ length: n }, (_, i) => ({ step: name, agent: name, input: { i } }));

/** What the tasks of each step spawn. */
const tree = { pages: count({ test: 20, soak: 99 }), lines: count({ test: 100, soak: 1000 }) };
const total = 1 + tree.pages + tree.pages * tree.lines + 1;
const spawnOf: Record<string, SpawnTaskInput[]> = {
  split: spawned('page', tree.pages),
  page: spawned('line', tree.lines),
};

const complete = async (tasks: readonly Assignment[]): Promise<void> => {
  const outcomes = await plane.services.results.reportResults(
    tasks.map((task) => ({
      ...plane.credentials(task),
      status: 'COMPLETED' as const,
      ...(spawnOf[task.step] && { spawn: spawnOf[task.step] }),
    })),
  );
  for (const outcome of outcomes) expect(outcome).toMatchObject({ outcome: 'APPLIED' });
};

test(`a tree of ${total} tasks completes, its join last`, async () => {
  const run = await plane.launch('book');
  const ran: Record<string, number> = {};
  let last = '';
  const worker = async (): Promise<void> => {
    for (;;) {
      const tasks = await plane.claim(agents);
      if (tasks.length === 0) return;
      for (const { step } of tasks) {
        ran[step] = (ran[step] ?? 0) + 1;
        last = step;
      }
      await complete(tasks);
    }
  };
  while ((await plane.run(run)).status !== 'COMPLETED') await Promise.all([worker(), worker(), worker()]);
  expect(ran).toEqual({ split: 1, page: tree.pages, line: tree.pages * tree.lines, merge: 1 });
  expect(last).toBe('merge');
  expect(await plane.rows('select total_tasks, open_tasks from runplane.runs')).toEqual([
    { total_tasks: total, open_tasks: 0 },
  ]);
});

test('the end of a task reads a handful of tasks, however many its run has', async () => {
  await plane.launch('book');
  await complete(await plane.claim(['split']));
  await complete(await plane.claim(['page'], 50));
  const [line] = await plane.claim(['line'], 1);
  const attemptId = line?.attemptId ?? '';
  const read = await transactionByKey(plane.database.db, async (tx) => {
    // What the backend counted before is not always reported yet: then it still counts here.
    const readSoFar = async (): Promise<number> => {
      const { rows } = await tx.query<{ tasks: number }>({
        text: `select (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as tasks
                 from pg_stat_xact_user_tables where schemaname = 'runplane' and relname = 'tasks'`,
      });
      return rows[0]?.tasks ?? 0;
    };
    const before = await readSoFar();
    const word = { step: 'word', agent: 'line' };
    const spawn = [word, { ...word, step: 'index', dependsOn: ['word'] }];
    const report = parseReport({ status: 'COMPLETED', spawn }, attemptId);
    const { recorded } = await recordEndings(tx, [{ attemptId, report }]);
    expect(recorded).toMatchObject([{ answer: 'APPLIED' }]);
    return (await readSoFar()) - before;
  });
  expect(read).toBeLessThan(20);
});

test('a run with many spawned tasks is cancelled as a whole, and tried again', async () => {
  const run = await plane.launch('book');
  await complete(await plane.claim(['split']));
  await complete(await plane.claim(['page'], 50));
  await plane.services.actions.cancelRun({ runId: run }, actor);
  expect(await plane.run(run)).toEqual({ status: 'CANCELLED', openTasks: 0 });
  const cancelled = await plane.rows<{ id: string }>(
    `select id from runplane.tasks where state = 'CANCELLED' order by id`,
  );
  const retried = await plane.services.actions.retryTasks({ filter: { runIds: [run] } }, actor);
  expect(retried).toMatchObject({ changed: Math.min(10_000, cancelled.length) });
  expect(await plane.rows('select count(*)::int as n from runplane.ready_tasks')).toEqual([
    { n: Math.min(10_000, cancelled.length) - 1 },
  ]);
});

test('a rerun of what failed takes the rest of the tree over, and joins it anew', async () => {
  await plane.job('told', [
    'split',
    { name: 'merge', agent: 'merge', dependsOn: ['split'], input: { $eval: 'steps.split.tasks' } },
  ]);
  const old = await plane.launch('told');
  const end = async (
    agent: string,
    spawn: SpawnTaskInput[],
    status: 'COMPLETED' | 'FAILED' = 'COMPLETED',
  ) => {
    const [task] = await plane.claim([agent], 1);
    if (!task) throw new Error(`nothing to claim for ${agent}`);
    const error = { code: 'NO', kind: 'PERMANENT' as const };
    return plane.report(task, status === 'FAILED' ? { status, error } : { status, output: agent, spawn });
  };
  await end('split', spawned('page', 2));
  await end('page', [{ step: 'line', agent: 'line', labels: [{ key: 'k', value: 'v' }] }]);
  await end('page', []);
  await end('line', [], 'FAILED');
  expect(await plane.run(old)).toMatchObject({ status: 'FAILED' });
  const outcome = await plane.services.actions.rerun({ runId: old }, actor);
  if (outcome.kind !== 'LaunchRunSuccess') throw new Error(outcome.message);
  const { runId } = outcome;
  expect(await plane.steps(runId)).toEqual({
    split: 'COMPLETED',
    page: 'COMPLETED',
    line: 'ENQUEUED',
    merge: 'BLOCKED',
  });
  await expectInvariants(plane.database.db);
  const [line] = await plane.claim(['line'], 1);
  expect(line?.labels).toEqual({ k: 'v' });
  await plane.report(line as Assignment, { status: 'COMPLETED', output: 'line', spawn: spawned('page', 1) });
  expect(await plane.steps(runId)).toMatchObject({ merge: 'BLOCKED' });
  await end('page', []);
  const [merge] = await plane.claim(['merge'], 1);
  const seen = (merge?.input ?? []) as { step: string; output: string }[];
  expect(seen.map(({ step, output }) => [step, output])).toEqual(
    ['page', 'page', 'line', 'page'].map((name) => [name, name]),
  );
  await plane.report(merge as Assignment, { status: 'COMPLETED' });
  expect(await plane.run(runId)).toEqual({ status: 'COMPLETED', openTasks: 0 });
});
