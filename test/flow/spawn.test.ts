import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import type { JobStepInput } from '../../src/operator/types.ts';
import { createRead } from '../../src/read/read.ts';
import type { SpawnTaskInput } from '../../src/result/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { count } from '../support/tier.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  for (const name of agents) await plane.agent(name);
  await plane.job('book', [step('split', []), step('merge', ['split'])]);
});
afterEach(() => plane.stop());

const agents = ['split', 'page', 'line', 'merge'];
const step = (name: string, dependsOn: string[], more: Partial<JobStepInput> = {}): JobStepInput => ({
  name,
  agent: name,
  dependsOn,
  ...more,
});
const spawned = (name: string, n: number, more: Partial<SpawnTaskInput> = {}): SpawnTaskInput[] =>
  Array.from({ length: n }, (_, i) => ({ step: name, agent: name, input: { i }, ...more }));

const claimOne = async (agent: string): Promise<Assignment> => {
  const [task] = await plane.claim([agent], 1);
  if (!task) throw new Error(`nothing to claim for ${agent}`);
  return task;
};
const complete = (task: Assignment, spawn?: SpawnTaskInput[]) =>
  plane.report(task, { status: 'COMPLETED', output: { of: task.step }, ...(spawn && { spawn }) });
const fail = (task: Assignment) =>
  plane.report(task, { status: 'FAILED', error: { code: 'NO', kind: 'PERMANENT' } });
/** Launches the book and lets its first step spawn. */
const fanOut = async (spawn: SpawnTaskInput[], job = 'book'): Promise<string> => {
  const run = await plane.launch(job);
  expect(await complete(await claimOne('split'), spawn)).toMatchObject({ outcome: 'APPLIED' });
  return run;
};
const stateOf = async (runId: string, name: string): Promise<string[]> =>
  (
    await plane.rows<{ state: string }>(
      'select distinct state::text as state from runplane.tasks where run_id = $1 and step = $2 order by state',
      [runId, name],
    )
  ).map(({ state }) => state);

test('a fan-out with another one below it is joined exactly once, whoever reports it in which order', async () => {
  const pages = count({ test: 1000, soak: 1000 });
  const run = await fanOut(spawned('page', pages));
  expect(await plane.run(run)).toEqual({ status: 'RUNNING', openTasks: pages + 1 });
  const second = await ControlPlane.start({ database: plane.database });
  const seen: string[] = [];
  const reporter = async ({ services, workerId }: ControlPlane): Promise<void> => {
    for (;;) {
      const claimed = await services.dispatch.claimTasks({ workerId, agents, limit: 25 });
      if (claimed.kind !== 'ClaimTasksSuccess') throw new Error(claimed.message);
      const { assignments } = claimed;
      if (assignments.length === 0) return;
      seen.push(...assignments.map((task) => task.step));
      const outcomes = await services.results.reportResults(
        assignments.map((task) => ({
          ...plane.credentials(task),
          status: 'COMPLETED' as const,
          spawn:
            task.step === 'page' && (task.input as { i: number }).i % 100 === 0 ? spawned('line', 3) : [],
        })),
      );
      for (const outcome of outcomes) expect(outcome).toMatchObject({ outcome: 'APPLIED' });
    }
  };
  for (let round = 0; (await plane.run(run)).status === 'RUNNING' && round < 100; round++)
    await Promise.all(Array.from({ length: 8 }, (_, i) => reporter(i % 2 === 0 ? plane : second)));
  await second.services.stop();
  expect(await plane.run(run)).toEqual({ status: 'COMPLETED', openTasks: 0 });
  expect(seen.filter((name) => name === 'line')).toHaveLength((pages / 100) * 3);
  // The join came last, and once.
  expect(seen.filter((name) => name === 'merge')).toHaveLength(1);
  expect(
    await plane.rows(
      `select c.to_status from runplane.change_log c join runplane.tasks t on t.id = c.task_id where t.step = 'merge' order by c.sequence`,
    ),
  ).toEqual(['BLOCKED', 'ENQUEUED', 'PROCESSING', 'COMPLETED'].map((to_status) => ({ to_status })));
  expect(
    await plane.rows(
      `select count(*)::int as early from runplane.attempts a join runplane.tasks t on t.id = a.task_id,
         (select x.started_at from runplane.attempts x join runplane.tasks m on m.id = x.task_id where m.step = 'merge') j
        where t.step <> 'merge' and a.finished_at > j.started_at`,
    ),
  ).toEqual([{ early: 0 }]);
});

test('spawned tasks have what their run and their parent have, and what they were given', async () => {
  await plane.launch('book', { customer: 'acme', labels: [{ key: 'a', value: '1' }], priority: 5 });
  const split = await claimOne('split');
  await complete(split, [
    { step: 'page', agent: 'page', labels: [{ key: 'b', value: '2' }], estimatedTokens: 9, maxAttempts: 2 },
    { step: 'page', agent: 'page', priority: 9, input: { second: true } },
  ]);
  const [second, first] = await plane.claim(['page']);
  expect(first).toMatchObject({
    input: {},
    labels: { a: '1', b: '2' },
    customer: 'acme',
    correlationId: split.correlationId,
  });
  expect(second).toMatchObject({ input: { second: true }, labels: { a: '1' } });
  expect(
    await plane.rows(
      'select priority, estimated_tokens, max_attempts, parent_task_id as parent from runplane.tasks where parent_task_id is not null order by id',
    ),
  ).toEqual([
    { priority: 5, estimated_tokens: 9, max_attempts: 2, parent: split.taskId },
    { priority: 9, estimated_tokens: null, max_attempts: null, parent: split.taskId },
  ]);
  await fail(first as Assignment);
  const page = await createRead(plane.database.db).tasks.list(
    { labels: [{ key: 'b', values: ['2'] }] },
    'CREATED_ASC',
    {},
  );
  expect(page.edges.map(({ node }) => node.id)).toEqual([first?.taskId]);
});

test('a spawned task may wait for its time, for its turn behind a serial key, and for other steps', async () => {
  const run = await fanOut([
    ...spawned('page', 2, { serialKey: 'k' }),
    { step: 'later', agent: 'page', availableAt: new Date('2999-01-01T00:00:00.000Z') },
    { step: 'index', agent: 'line', dependsOn: ['page'] },
    {
      step: 'last',
      agent: 'line',
      dependsOn: ['index', 'page'],
      availableAt: new Date('2999-01-02T00:00:00.000Z'),
    },
  ]);
  for (const i of [0, 1]) {
    expect(await plane.claim(['line'])).toEqual([]);
    const [page, ...more] = await plane.claim(['page']);
    expect([page?.input, more]).toEqual([{ i }, []]);
    await complete(page as Assignment);
  }
  await complete(await claimOne('line'));
  expect(
    await plane.rows(
      'select reason, available_at::date::text as day from runplane.delayed_tasks order by available_at',
    ),
  ).toEqual([
    { reason: 'NOT_BEFORE', day: '2999-01-01' },
    { reason: 'NOT_BEFORE', day: '2999-01-02' },
  ]);
  expect(await stateOf(run, 'merge')).toEqual(['BLOCKED']);
});

test('what is spawned behind steps that are over starts at once, or fails at once', async () => {
  await plane.job('late', [step('line', []), step('page', [], { optional: true }), step('split', ['line'])]);
  const run = await plane.launch('late');
  await complete(await claimOne('line'));
  await fail(await claimOne('page'));
  await complete(await claimOne('split'), [
    { step: 'x', agent: 'line', dependsOn: ['line', 'page'] },
    { step: 'bad', agent: 'page' },
    { step: 'y', agent: 'merge', dependsOn: ['bad'] },
  ]);
  await fail(await claimOne('page'));
  expect(await plane.steps(run)).toMatchObject({ x: 'ENQUEUED', bad: 'FAILED', y: 'FAILED' });
  await complete(await claimOne('line'), [
    { step: 'z', agent: 'merge', dependsOn: ['bad'] },
    { step: 'all', agent: 'merge', dependsOn: ['z'], when: 'DEPENDENCIES_FINISHED' },
  ]);
  expect(await plane.steps(run)).toMatchObject({ z: 'FAILED', all: 'ENQUEUED' });
  await complete(await claimOne('merge'));
  expect(await plane.run(run)).toEqual({ status: 'FAILED', openTasks: 0 });
});

describe('when a task of the tree fails', () => {
  test('what waits for the tree fails too, and a retry brings both back', async () => {
    const run = await fanOut(spawned('page', 3));
    const [first, ...others] = await plane.claim(['page']);
    for (const task of others) await complete(task, spawned('line', 1));
    const lines = await plane.claim(['line']);
    await complete(lines[0] as Assignment);
    await complete(first as Assignment);
    expect(await stateOf(run, 'merge')).toEqual(['BLOCKED']);
    await fail(lines[1] as Assignment);
    expect(await stateOf(run, 'merge')).toEqual(['FAILED']);
    expect(await plane.run(run)).toEqual({ status: 'FAILED', openTasks: 0 });
    expect(
      await plane.rows(`select error_code, error_message from runplane.tasks where step = 'merge'`),
    ).toEqual([{ error_code: 'DEPENDENCY_FAILED', error_message: 'Not completed: split.' }]);
    await plane.services.actions.retryTask({ taskId: lines[1]?.taskId ?? '' }, actor);
    expect(await stateOf(run, 'merge')).toEqual(['BLOCKED']);
    await complete(await claimOne('line'), spawned('line', 2));
    for (const task of await plane.claim(['line'])) await complete(task);
    await complete(await claimOne('merge'));
    expect(await plane.run(run)).toEqual({ status: 'COMPLETED', openTasks: 0 });
  });

  test('what waits for it however it ends runs once all are over, and optional ones harm nobody', async () => {
    await plane.job('lenient', [
      step('split', []),
      step('merge', ['split'], { when: 'DEPENDENCIES_FINISHED' }),
      step('line', ['split']),
    ]);
    const run = await fanOut([...spawned('page', 2, { optional: true })], 'lenient');
    const pages = await plane.claim(['page']);
    await fail(pages[0] as Assignment);
    expect(await plane.claim(['merge', 'line'])).toEqual([]);
    await fail(pages[1] as Assignment);
    const joins = await plane.claim(['merge', 'line']);
    expect(joins.map((task) => task.step).sort()).toEqual(['line', 'merge']);
    for (const task of joins) await complete(task);
    expect(await plane.run(run)).toEqual({ status: 'COMPLETED', openTasks: 0 });
    expect(await plane.rows('select id from runplane.dead_letters')).toHaveLength(2);
  });
});

test('templates see the tasks of a step in the order of their creation, those below included', async () => {
  await plane.job('told', [
    step('split', []),
    step('merge', ['split'], {
      input: {
        own: { $eval: 'steps.split.output.of' },
        tasks: { $eval: 'steps.split.tasks' },
        cut: { $eval: 'steps.split.tasksCut' },
      },
    }),
  ]);
  await fanOut([...spawned('page', 2), ...spawned('line', 1, { optional: true })], 'told');
  for (const task of await plane.claim(['page', 'line'])) {
    if (task.step === 'line') await fail(task);
    else await complete(task, (task.input as { i: number }).i === 0 ? [{ step: 'note', agent: 'line' }] : []);
  }
  await complete(await claimOne('line'));
  expect((await claimOne('merge')).input).toEqual({
    own: 'split',
    cut: false,
    tasks: [
      { step: 'page', status: 'COMPLETED', output: { of: 'page' }, errorCode: null },
      { step: 'page', status: 'COMPLETED', output: { of: 'page' }, errorCode: null },
      { step: 'line', status: 'FAILED', output: null, errorCode: 'NO' },
      { step: 'note', status: 'COMPLETED', output: { of: 'note' }, errorCode: null },
    ],
  });
});
