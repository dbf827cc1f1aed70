import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { transaction } from '../../src/db/transaction.ts';
import { toPublicId } from '../../src/domain/ids.ts';
import { Client } from '../graphql/client.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  for (const name of ['a', 'b']) await plane.agent(name, { computeCostPerHour: '3600' });
  await plane.job('one', ['a']);
  await plane.job('two', [
    { name: 'a', agent: 'a', assetKey: 'text' },
    { name: 'b', agent: 'b', dependsOn: ['a'] },
  ]);
});
afterEach(() => plane.stop());

const secret = 'something secret';
const usage = [{ model: 'm', inputTokens: 10, cost: '0.5', raw: { secret } }];
const error = { code: 'NO', kind: 'PERMANENT', message: secret } as const;
const taskOf = async (runId: string, step = 'a'): Promise<string> => {
  const [task] = await plane.rows<{ id: string }>(
    'select id from runplane.tasks where run_id = $1 and step = $2',
    [runId, step],
  );
  return task?.id ?? '';
};
const remove = (taskId: string, reason?: string) =>
  plane.services.actions.deleteTask({ taskId, reason }, actor);
const claimOne = async (agent = 'a') => {
  const [task] = await plane.claim([agent], 1);
  if (!task) throw new Error('nothing to claim');
  return task;
};
const audits = (action: string) =>
  plane.rows('select before, after, reason from runplane.audit_entries where action = $1', [action]);

describe('a task that is deleted', () => {
  test('is hidden everywhere and leaves no payload, but its usage, its cost and its run stay', async () => {
    const run = await plane.launch('two', { correlationId: 'trace' });
    const a = await claimOne();
    await plane.report(a, {
      status: 'COMPLETED',
      output: { secret },
      usage,
      materializations: [{ assetKey: 'text', metadata: { secret } }],
    });
    const b = await claimOne('b');
    await plane.report(b, { status: 'FAILED', error, usage });
    const client = new Client(plane);
    const totals = `{ runs { nodes { status cost { total } usage { inputTokens } taskCounts { completed failed } tasks { nodes { step } } } } }`;
    const before = (await client.query(totals)).runs.nodes[0];
    expect(before.taskCounts).toEqual({ completed: 1, failed: 1 });
    const ids = { a: a.taskId, b: b.taskId };
    for (const id of Object.values(ids)) {
      expect(await remove(id, 'asked for')).toMatchObject({ kind: 'TaskActionSuccess', taskId: id });
    }
    expect((await client.query(totals)).runs.nodes[0]).toEqual({
      ...before,
      taskCounts: { completed: 0, failed: 0 },
      tasks: { nodes: [] },
    });
    const answer = await client.query(
      `query($task: ID!, $attempt: ID!) {
        node(id: $task) { id } attempt: node(id: $attempt) { id } task(id: $task) { id }
        tasks { nodes { id } } taskCounts { completed failed }
        trace(correlationId: "trace") { tasks { nodes { id } } attempts { nodes { id task { id } } } materializations { nodes { metadata task { id } attempt { id } } } }
        runs { nodes { taskOfStep(step: "a") { id } error { code message } } }
        deadLetters { nodes { id } }
        agent(name: "a") { queue { stats { completedLastHour failedLastHour deadLettered } } } }`,
      { task: toPublicId('task', ids.a), attempt: toPublicId('att', a.attemptId) },
    );
    expect(answer).toEqual({
      node: null,
      attempt: null,
      task: null,
      tasks: { nodes: [] },
      taskCounts: { completed: 0, failed: 0 },
      trace: {
        tasks: { nodes: [] },
        attempts: { nodes: [] },
        materializations: { nodes: [{ metadata: null, task: null, attempt: null }] },
      },
      runs: { nodes: [{ taskOfStep: null, error: { code: 'NO', message: null } }] },
      deadLetters: { nodes: [] },
      agent: { queue: { stats: { completedLastHour: 0, failedLastHour: 0, deadLettered: 0 } } },
    });
    for (const table of ['tasks', 'attempts', 'usage', 'materializations', 'dead_letters', 'audit_entries']) {
      expect(
        await plane.rows(`select * from runplane.${table} x where x::text like $1`, [`%${secret}%`]),
        table,
      ).toEqual([]);
    }
    expect(await audits('task.delete')).toEqual([
      { before: { status: 'COMPLETED' }, after: null, reason: 'asked for' },
      { before: { status: 'FAILED' }, after: null, reason: 'asked for' },
    ]);
    expect(await plane.run(run)).toEqual({ status: 'FAILED', openTasks: 0 });
  });

  test('is not found by any further action, nor opened again by a retry of another one', async () => {
    const run = await plane.launch('two');
    await plane.report(await claimOne(), { status: 'FAILED', error });
    const [letter] = await plane.rows<{ id: string }>('select id from runplane.dead_letters');
    await remove(await taskOf(run, 'b'));
    const { actions } = plane.services;
    const taskId = await taskOf(run);
    expect(await actions.retryTask({ taskId }, actor)).toMatchObject({ taskStatus: 'ENQUEUED' });
    expect(await plane.steps(run)).toEqual({ a: 'ENQUEUED', b: 'FAILED' });
    await plane.report(await claimOne(), { status: 'FAILED', error });
    await remove(taskId);
    for (const outcome of [
      await actions.retryTask({ taskId }, actor),
      await actions.replayDeadLetter({ id: letter?.id ?? '' }, actor),
      await actions.cancelTask({ taskId }, actor),
      await actions.runTaskNow({ taskId }, actor),
      await actions.setTaskPriority({ taskId, priority: 1 }, actor),
      await remove(taskId),
    ]) {
      expect(outcome).toMatchObject({ kind: 'NotFound' });
    }
    expect(await actions.retryTasks({ filter: { runIds: [run] } }, actor)).toMatchObject({ matched: 0 });
    expect(await audits('task.delete')).toHaveLength(2);
  });

  test('must be over', async () => {
    const run = await plane.launch('two');
    expect(await remove(await taskOf(run, 'b'))).toMatchObject({ kind: 'IllegalState', status: 'BLOCKED' });
    expect(await remove(await taskOf(run))).toMatchObject({ kind: 'IllegalState', status: 'ENQUEUED' });
    await plane.claim(['a']);
    expect(await remove(await taskOf(run))).toMatchObject({ kind: 'IllegalState', status: 'PROCESSING' });
    expect(await remove(crypto.randomUUID())).toMatchObject({ kind: 'NotFound' });
    expect(await audits('task.delete')).toEqual([]);
  });

  test('gets no payload back by a late result, whose usage is booked all the same', async () => {
    const run = await plane.launch('one');
    const lost = await claimOne();
    await plane.expire(lost);
    await plane.sweep(lost);
    await plane.report(await claimOne(), { status: 'COMPLETED', output: 1 });
    await remove(await taskOf(run));
    expect(
      await plane.report(lost, {
        status: 'FAILED',
        error,
        usage,
        traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      }),
    ).toMatchObject({ outcome: 'SUPERSEDED', taskStatus: 'COMPLETED' });
    expect(await plane.rows('select llm_cost::float8 as cost, raw from runplane.usage')).toEqual([
      { cost: 0.5, raw: null },
    ]);
  });

  test('is deleted once, however many ask while its result, a retry and a rerun come in', async () => {
    const runs = await Promise.all(Array.from({ length: 20 }, () => plane.launch('one')));
    const claimed = await plane.claim(['a']);
    const { actions } = plane.services;
    await Promise.all(
      claimed.flatMap((task) => [
        plane.report(task, { status: 'FAILED', error, usage }),
        ...[1, 2].map(() => remove(task.taskId)),
        actions.retryTask({ taskId: task.taskId }, actor),
        actions.rerun({ runId: task.runId }, actor),
      ]),
    );
    const ids = await Promise.all(runs.map((run) => taskOf(run)));
    await Promise.all(
      ids.flatMap((id) => [remove(id), actions.retryTask({ taskId: id }, actor), remove(id)]),
    );
    const [deleted] = await plane.rows<{ n: number }>(
      'select count(*)::int as n from runplane.tasks where deleted_at is not null',
    );
    expect(await audits('task.delete')).toHaveLength(deleted?.n ?? 0);
  });
});

describe('dead letters that are purged', () => {
  const letters = () => plane.rows('select id from runplane.dead_letters');
  const purge = (filter: object, more: object = {}) =>
    plane.services.actions.purgeDeadLetters({ filter, reason: 'known', ...more }, actor);

  test('are gone by filter, oldest first, with one audit entry and its reason; their tasks stay failed', async () => {
    for (let i = 0; i < 3; i++) await plane.launch('one');
    for (const task of await plane.claim(['a'])) await plane.report(task, { status: 'FAILED', error });
    const filter = { errorCodes: ['NO'] };
    expect(await purge(filter, { dryRun: true })).toMatchObject({ matched: 3, changed: 0, hasMore: false });
    expect(await letters()).toHaveLength(3);
    expect(await audits('dead_letter.purge.bulk')).toEqual([]);
    expect(await purge(filter, { limit: 2 })).toEqual({
      kind: 'BulkSuccess',
      matched: 2,
      changed: 2,
      hasMore: true,
    });
    expect(await purge(filter)).toMatchObject({ matched: 1, changed: 1, hasMore: false });
    expect(await purge(filter)).toMatchObject({ matched: 0, changed: 0 });
    expect(await letters()).toEqual([]);
    expect(await plane.rows('select distinct state from runplane.tasks')).toEqual([{ state: 'FAILED' }]);
    expect(await audits('dead_letter.purge.bulk')).toEqual([
      { before: null, after: { filter, changed: 2 }, reason: 'known' },
      { before: null, after: { filter, changed: 1 }, reason: 'known' },
    ]);
    const [task] = await plane.rows<{ id: string }>('select id from runplane.tasks limit 1');
    await plane.services.actions.retryTask({ taskId: task?.id ?? '' }, actor);
    await plane.report(await claimOne(), { status: 'FAILED', error });
    expect(await letters()).toHaveLength(1);
  });

  test('need a filter and a reason', async () => {
    expect(await purge({})).toMatchObject({ kind: 'InvalidInput', field: 'filter' });
    expect(await purge({ jobs: ['one'] }, { reason: ' ' })).toMatchObject({
      kind: 'InvalidInput',
      field: 'reason',
    });
    expect(await purge({ jobs: ['one'] }, { limit: 0 })).toMatchObject({ field: 'limit' });
  });

  test('are those that still match when their turn comes: one that is replayed meanwhile stays', async () => {
    await plane.launch('one');
    await plane.report(await claimOne(), { status: 'FAILED', error });
    const [purging] = await transaction(plane.database.db, async (tx) => {
      await tx.query({ text: 'update runplane.dead_letters set replayed_at = runplane.clock()' });
      const begun = purge({ replayed: false });
      await plane.untilBlocked(1);
      // In an array, because a promise would be awaited here.
      return [begun];
    });
    expect(await purging).toMatchObject({ matched: 0, changed: 0 });
    expect(await letters()).toHaveLength(1);
  });
});
