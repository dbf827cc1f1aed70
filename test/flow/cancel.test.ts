import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { JobStepInput } from '../../src/operator/types.ts';
import { at, stopClock } from '../support/clock.ts';
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
const cancelRun = (runId: string, reason?: string) =>
  plane.services.actions.cancelRun({ runId, reason }, actor);
const cancelTask = (taskId: string) => plane.services.actions.cancelTask({ taskId }, actor);
const taskOf = async (runId: string, name: string): Promise<string> => {
  const [task] = await plane.rows<{ id: string }>(
    'select id from runplane.tasks where run_id = $1 and step = $2',
    [runId, name],
  );
  return task?.id ?? '';
};
const audits = async () =>
  (
    await plane.rows<{ action: string }>(
      'select action from runplane.audit_entries where action like $1 order by id',
      ['%cancel%'],
    )
  ).map((entry) => entry.action);

describe('a run that is cancelled', () => {
  test('ends at once when nothing of it is executed, and nothing of it can be claimed', async () => {
    await plane.job('chain', [step('a', []), step('b', ['a'])]);
    const run = await plane.launch('chain');
    expect(await cancelRun(run, 'not needed')).toEqual({
      kind: 'RunActionSuccess',
      runId: run,
      runStatus: 'CANCELLED',
    });
    expect(await plane.steps(run)).toEqual({ a: 'CANCELLED', b: 'CANCELLED' });
    expect(await plane.claim(['a', 'b'])).toEqual([]);
    expect(
      await plane.rows(
        'select reason, count(*)::int from runplane.change_log where to_status = $1 group by reason',
        ['CANCELLED'],
      ),
    ).toEqual([{ reason: 'not needed', count: 3 }]);
    expect(await audits()).toEqual(['run.cancel']);
    expect(await cancelRun(run)).toMatchObject({ kind: 'IllegalState', status: 'CANCELLED' });
    expect(await audits()).toEqual(['run.cancel']);
  });

  test('is CANCELLING while a worker still has a task, which learns of it by its heartbeat', async () => {
    await plane.job('chain', [step('a', []), step('b', ['a']), step('c', [])]);
    const run = await plane.launch('chain');
    const [task] = await plane.claim(['a']);
    expect(await cancelRun(run, 'not needed')).toMatchObject({ runStatus: 'CANCELLING' });
    expect(
      await plane.rows('select reason from runplane.change_log where to_status = $1', ['CANCELLING']),
    ).toEqual([{ reason: 'not needed' }]);
    expect(await plane.steps(run)).toEqual({ a: 'PROCESSING', b: 'CANCELLED', c: 'CANCELLED' });
    expect(await cancelRun(run)).toMatchObject({ runStatus: 'CANCELLING' });
    expect(await audits()).toEqual(['run.cancel']);
    const [beat] = await plane.services.dispatch.extendLeases([plane.credentials(task as never)]);
    expect(beat).toMatchObject({ state: 'CANCEL_REQUESTED' });
    expect(await plane.report(task as never, { status: 'CANCELLED' })).toMatchObject({
      taskStatus: 'CANCELLED',
    });
    expect(await plane.run(run)).toEqual({ status: 'CANCELLED', openTasks: 0 });
  });

  test('takes the lease of a worker that does not report in its grace time', async () => {
    const run = await plane.launch('one');
    const [task] = await plane.claim(['a']);
    await cancelRun(run);
    expect(await plane.sweep(task as never)).toEqual({ answer: 'NOTHING' });
    await plane.rows(`update runplane.leases set cancel_deadline = runplane.clock() - interval '1 second'`);
    expect(await plane.sweep(task as never)).toMatchObject({ taskStatus: 'CANCELLED' });
    expect(await plane.run(run)).toMatchObject({ status: 'CANCELLED' });
  });

  test('gives a worker the grace time of the settings, which heartbeats do not extend', async () => {
    const patient = await ControlPlane.start({ database: plane.database, cancelGraceSeconds: 5 });
    await stopClock(plane.database.db, at(0));
    for (let n = 0; n < 4; n++) await plane.launch('one');
    const tasks = await plane.claim(['a']);
    const [byRun, byTask, byRuns, byTasks] = tasks.map(({ runId, taskId }) => ({ runId, taskId }));
    const { actions } = patient.services;
    await actions.cancelRun({ runId: byRun?.runId ?? '' }, actor);
    await actions.cancelTask({ taskId: byTask?.taskId ?? '' }, actor);
    await actions.cancelRuns({ filter: { ids: [byRuns?.runId ?? ''] } }, actor);
    await actions.cancelTasks({ filter: { ids: [byTasks?.taskId ?? ''] } }, actor);
    await stopClock(plane.database.db, at(4));
    const beats = await plane.services.dispatch.extendLeases(tasks.map((task) => plane.credentials(task)));
    expect(beats.map(({ state, cancelDeadline }) => ({ state, cancelDeadline }))).toEqual(
      tasks.map(() => ({ state: 'CANCEL_REQUESTED', cancelDeadline: at(5) })),
    );
    for (const task of tasks) expect(await plane.sweep(task)).toEqual({ answer: 'NOTHING' });
    await stopClock(plane.database.db, at(6));
    for (const task of tasks) expect(await plane.sweep(task)).toMatchObject({ taskStatus: 'CANCELLED' });
    await patient.services.stop();
  });

  test.each([
    { by: 'its id', cancel: (run: string) => cancelRun(run), outcomes: ['RunActionSuccess'] },
    {
      by: 'a filter',
      cancel: (run: string) => plane.services.actions.cancelRuns({ filter: { ids: [run] } }, actor),
      outcomes: [0, 1],
    },
  ])('is so once, whoever asks at the same time, by $by', async ({ cancel, outcomes }) => {
    const run = await plane.launch('one');
    await plane.claim(['a']);
    const holder = new pg.Client({ connectionString: plane.database.url });
    await holder.connect();
    await holder.query('begin');
    await holder.query('select from runplane.runs where id = $1 for update', [run]);
    const both = [cancel(run), cancel(run)];
    await plane.untilBlocked(2);
    await holder.query('commit');
    await holder.end();
    const changed = (await Promise.all(both)).map((outcome) =>
      outcome.kind === 'BulkSuccess' ? outcome.changed : outcome.kind,
    );
    expect(new Set<unknown>(changed)).toEqual(new Set<unknown>(outcomes));
    expect(await audits()).toHaveLength(1);
  });

  test('is not, when it ended before', async () => {
    const run = await plane.launch('one');
    const [task] = await plane.claim(['a']);
    const holder = new pg.Client({ connectionString: plane.database.url });
    await holder.connect();
    await holder.query('begin');
    await holder.query('select from runplane.runs where id = $1 for update', [run]);
    const ended = plane.report(task as never, { status: 'COMPLETED' });
    await plane.untilBlocked(1);
    const cancelled = cancelRun(run);
    await plane.untilBlocked(2);
    await holder.query('commit');
    await holder.end();
    expect(await ended).toMatchObject({ taskStatus: 'COMPLETED' });
    expect(await cancelled).toMatchObject({ kind: 'IllegalState', status: 'COMPLETED' });
    expect(await audits()).toEqual([]);
  });

  test('keeps work that is done: its last task completing in spite of the cancel completes it', async () => {
    const run = await plane.launch('one');
    const [task] = await plane.claim(['a']);
    await cancelRun(run);
    expect(await plane.report(task as never, { status: 'COMPLETED' })).toMatchObject({
      taskStatus: 'COMPLETED',
    });
    expect(await plane.run(run)).toMatchObject({ status: 'COMPLETED' });
  });

  test('still does its protected clean-up', async () => {
    await plane.job('cleanup', [
      step('a', []),
      step('b', ['a'], { when: 'DEPENDENCIES_FINISHED', cancellable: false }),
    ]);
    const run = await plane.launch('cleanup');
    expect(await cancelRun(run)).toMatchObject({ runStatus: 'CANCELLING' });
    expect(await plane.steps(run)).toEqual({ a: 'CANCELLED', b: 'ENQUEUED' });
    const [cleanup] = await plane.claim(['b']);
    await plane.report(cleanup as never, { status: 'COMPLETED' });
    expect(await plane.run(run)).toMatchObject({ status: 'CANCELLED' });
  });

  test('starts nothing after the cancel committed, while workers claim all the time', async () => {
    const runs = await Promise.all(Array.from({ length: 30 }, () => plane.launch('one')));
    const claimed = Promise.all(Array.from({ length: 20 }, () => plane.claim(['a'], 2)));
    await Promise.all(runs.map((run) => cancelRun(run)));
    await claimed;
    expect(await plane.claim(['a'])).toEqual([]);
    for (const { attempt_id } of await plane.rows<{ attempt_id: string }>(
      'select attempt_id from runplane.leases',
    )) {
      await plane.report({ attemptId: attempt_id }, { status: 'CANCELLED' });
    }
    expect(await plane.rows('select id from runplane.runs where status <> $1', ['CANCELLED'])).toEqual([]);
  });
});

describe('a task that is cancelled', () => {
  test('fails what waits for it, and its run goes on', async () => {
    await plane.job('two', [step('a', []), step('b', ['a']), step('c', [])]);
    const run = await plane.launch('two');
    expect(await cancelTask(await taskOf(run, 'a'))).toMatchObject({
      kind: 'TaskActionSuccess',
      taskStatus: 'CANCELLED',
    });
    expect(await plane.steps(run)).toEqual({ a: 'CANCELLED', b: 'FAILED', c: 'ENQUEUED' });
    expect(await plane.run(run)).toMatchObject({ status: 'QUEUED' });
  });

  test('may be one that waits for its time, for its turn behind a serial key, or for others', async () => {
    await plane.job('two', [step('a', []), step('b', ['a'])]);
    const later = await plane.launch('one', { availableAt: new Date(Date.now() + 3_600_000) });
    await plane.launch('one', { serialKey: 'k' });
    const behind = await plane.launch('one', { serialKey: 'k' });
    const third = await plane.launch('one', { serialKey: 'k' });
    const two = await plane.launch('two');
    for (const [run, name] of [
      [later, 'a'],
      [behind, 'a'],
      [two, 'b'],
    ] as const) {
      expect(await cancelTask(await taskOf(run, name))).toMatchObject({ taskStatus: 'CANCELLED' });
    }
    expect(await cancelTask(await taskOf(third, 'a'))).toMatchObject({ taskStatus: 'CANCELLED' });
    expect(await audits()).toHaveLength(4);
  });

  test('that is first of its serial key lets the next one go', async () => {
    const first = await plane.launch('one', { serialKey: 'k' });
    const second = await plane.launch('one', { serialKey: 'k' });
    await cancelTask(await taskOf(first, 'a'));
    expect((await plane.claim(['a'])).map((task) => task.runId)).toEqual([second]);
  });

  test('may be protected, which bulk cancels pass over', async () => {
    await plane.job('protected', [step('a', [], { cancellable: false })]);
    const run = await plane.launch('protected');
    expect(await plane.services.actions.cancelTasks({ filter: { runIds: [run] } }, actor)).toMatchObject({
      matched: 0,
      changed: 0,
    });
    expect(await cancelTask(await taskOf(run, 'a'))).toMatchObject({ taskStatus: 'CANCELLED' });
  });

  test('is refused when it is over or unknown', async () => {
    const run = await plane.launch('one');
    const id = await taskOf(run, 'a');
    await cancelTask(id);
    expect(await cancelTask(id)).toMatchObject({ kind: 'IllegalState', status: 'CANCELLED' });
    expect(await cancelTask(crypto.randomUUID())).toMatchObject({ kind: 'NotFound' });
  });
});

describe('a cancel by filter', () => {
  test('cancels what matches, oldest first, up to the limit, with one audit entry; a dry run only counts', async () => {
    for (let i = 0; i < 5; i++)
      await plane.launch('one', {
        customer: i < 4 ? 'acme' : 'other',
        labels: [{ key: 'n', value: String(i) }],
      });
    const { actions } = plane.services;
    expect(await actions.cancelRuns({ filter: { customers: ['acme'] }, dryRun: true }, actor)).toEqual({
      kind: 'BulkSuccess',
      matched: 4,
      changed: 0,
      hasMore: false,
    });
    expect(await actions.cancelRuns({ filter: { customers: ['acme'] }, limit: 3 }, actor)).toEqual({
      kind: 'BulkSuccess',
      matched: 3,
      changed: 3,
      hasMore: true,
    });
    expect(
      await plane.rows(`select labels ->> 'n' as n from runplane.runs where status = 'QUEUED' order by id`),
    ).toEqual([{ n: '3' }, { n: '4' }]);
    expect(
      await actions.cancelTasks({ filter: { labels: [{ key: 'n', values: ['4'] }] }, reason: 'why' }, actor),
    ).toEqual({ kind: 'BulkSuccess', matched: 1, changed: 1, hasMore: false });
    expect(await audits()).toEqual(['run.cancel.bulk', 'task.cancel.bulk']);
  });

  test('refuses an empty filter and a wrong limit', async () => {
    const { actions } = plane.services;
    expect(await actions.cancelRuns({ filter: {} }, actor)).toMatchObject({
      kind: 'InvalidInput',
      field: 'filter',
    });
    expect(await actions.cancelTasks({ filter: { jobs: null } }, actor)).toMatchObject({
      kind: 'InvalidInput',
      field: 'filter',
    });
    expect(await actions.cancelTasks({ filter: { jobs: ['x'] }, limit: 10_001 }, actor)).toMatchObject({
      kind: 'InvalidInput',
      field: 'limit',
    });
  });
});
