import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { transaction } from '../../src/db/transaction.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { count } from '../support/tier.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  for (const name of ['a', 'b']) await plane.agent(name);
  await plane.job('one', ['a']);
  await plane.job('two', [
    { name: 'a', agent: 'a' },
    { name: 'b', agent: 'b', dependsOn: ['a'] },
  ]);
});
afterEach(() => plane.stop());

const later = new Date(Date.now() + 3_600_000);
const taskOf = async (runId: string, step = 'a'): Promise<string> => {
  const [task] = await plane.rows<{ id: string }>(
    'select id from runplane.tasks where run_id = $1 and step = $2',
    [runId, step],
  );
  return task?.id ?? '';
};
const runNow = (taskId: string) => plane.services.actions.runTaskNow({ taskId }, actor);
const setPriority = (taskId: string, priority: number) =>
  plane.services.actions.setTaskPriority({ taskId, priority }, actor);
const claimRuns = async (agent = 'a', limit = 100) =>
  (await plane.claim([agent], limit)).map((task) => task.runId);
const audits = (action: string) =>
  plane.rows('select before, after from runplane.audit_entries where action = $1 order by id', [action]);

describe('a task that is run now', () => {
  test('and was scheduled is ready at once, in front of others', async () => {
    const other = await plane.launch('one');
    const run = await plane.launch('one', { availableAt: later, priority: 950 });
    expect(await claimRuns('a', 0 + 1)).toEqual([other]);
    const id = await taskOf(run);
    expect(await runNow(id)).toEqual({ kind: 'TaskActionSuccess', taskId: id, taskStatus: 'ENQUEUED' });
    expect(
      await plane.rows('select priority, available_at <= now() as due from runplane.tasks where id = $1', [
        id,
      ]),
    ).toEqual([{ priority: 1000, due: true }]);
    expect(await audits('task.run_now')).toEqual([
      {
        before: { priority: 950, availableAt: later.toISOString() },
        after: { priority: 1000, availableAt: expect.any(String) },
      },
    ]);
    expect(await claimRuns()).toEqual([run]);
  });

  test('and backed off is ready at once, with its attempts', async () => {
    await plane.agent('a', {
      retryPolicy: { backoff: 'FIXED', initialDelaySeconds: 3600, maxDelaySeconds: 3600 },
    });
    const run = await plane.launch('one');
    const [first] = await plane.claim(['a']);
    await plane.report(first as never, { status: 'FAILED', error: { code: 'AGAIN' } });
    expect(await plane.claim(['a'])).toEqual([]);
    expect(await runNow(await taskOf(run))).toMatchObject({ taskStatus: 'ENQUEUED' });
    expect(await plane.claim(['a'])).toMatchObject([{ runId: run, number: 2 }]);
  });

  test('keeps its place in the order of its serial key', async () => {
    await plane.agent('a', {
      retryPolicy: { backoff: 'FIXED', initialDelaySeconds: 3600, maxDelaySeconds: 3600 },
    });
    const head = await plane.launch('one', { serialKey: 'k' });
    const behind = await plane.launch('one', { serialKey: 'k' });
    const scheduled = await plane.launch('one', { serialKey: 'k', availableAt: later });
    const [attempt] = await plane.claim(['a']);
    await plane.report(attempt as never, { status: 'FAILED', error: { code: 'AGAIN' } });
    expect(await runNow(await taskOf(behind))).toMatchObject({ kind: 'IllegalState', status: 'ENQUEUED' });
    expect(await runNow(await taskOf(scheduled))).toMatchObject({ taskStatus: 'ENQUEUED' });
    expect(await claimRuns()).toEqual([]);
    expect(await runNow(await taskOf(head))).toMatchObject({ taskStatus: 'ENQUEUED' });
    for (const expected of [head, behind, scheduled]) {
      const [next] = await plane.claim(['a']);
      expect(next?.runId).toBe(expected);
      await plane.report(next as never, { status: 'COMPLETED' });
    }
  });

  test('must wait for a time: all others are refused with their status, and nothing is audited', async () => {
    const run = await plane.launch('two');
    expect(await runNow(await taskOf(run, 'b'))).toMatchObject({ kind: 'IllegalState', status: 'BLOCKED' });
    expect(await runNow(await taskOf(run))).toMatchObject({ kind: 'IllegalState', status: 'ENQUEUED' });
    const [task] = await plane.claim(['a']);
    expect(await runNow(await taskOf(run))).toMatchObject({ kind: 'IllegalState', status: 'PROCESSING' });
    await plane.report(task as never, { status: 'COMPLETED' });
    expect(await runNow(await taskOf(run))).toMatchObject({ kind: 'IllegalState', status: 'COMPLETED' });
    expect(await runNow(crypto.randomUUID())).toMatchObject({ kind: 'NotFound' });
    expect(await audits('task.run_now')).toEqual([]);
  });
});

describe('the priority of a task', () => {
  test('that is ready moves it to its new place at once', async () => {
    const runs: string[] = [];
    for (let i = 0; i < 3; i++) runs.push(await plane.launch('one'));
    const [first, second, third] = runs as [string, string, string];
    expect(await setPriority(await taskOf(third), 5)).toMatchObject({ taskStatus: 'ENQUEUED' });
    expect(await setPriority(await taskOf(first), -5)).toMatchObject({ taskStatus: 'ENQUEUED' });
    expect(await claimRuns()).toEqual([third, second, first]);
    expect(await audits('task.set_priority')).toEqual([
      { before: { priority: 0 }, after: { priority: 5 } },
      { before: { priority: 0 }, after: { priority: -5 } },
    ]);
  });

  test('that waits for a time, for its serial key, for others or for a retry counts when it is ready', async () => {
    const scheduled = await plane.launch('one', { availableAt: later });
    const head = await plane.launch('one', { serialKey: 'k', priority: 900 });
    const behind = await plane.launch('one', { serialKey: 'k' });
    const blocked = await plane.launch('two', { priority: 800 });
    expect(await claimRuns('a', 2)).toEqual([head, blocked]);
    for (const run of [scheduled, behind, head]) await setPriority(await taskOf(run), 7);
    await setPriority(await taskOf(blocked, 'b'), 7);
    expect(await plane.rows('select available_at, reason from runplane.delayed_tasks')).toEqual([
      { available_at: later, reason: 'NOT_BEFORE' },
    ]);
    await runNow(await taskOf(scheduled));
    for (const { attempt_id } of await plane.rows<{ attempt_id: string }>(
      'select attempt_id from runplane.leases',
    ))
      await plane.report({ attemptId: attempt_id }, { status: 'FAILED', error: { code: 'AGAIN' } });
    const again = await plane.claim(['a']);
    expect(again.map((task) => task.runId)).toEqual([blocked, scheduled, head]);
    for (const task of again) await plane.report(task, { status: 'COMPLETED' });
    expect(await claimRuns()).toEqual([behind]);
    expect(await claimRuns('b')).toEqual([blocked]);
    expect(await plane.rows('select step, priority from runplane.tasks order by priority, step')).toEqual([
      { step: 'a', priority: 7 },
      { step: 'a', priority: 7 },
      { step: 'b', priority: 7 },
      { step: 'a', priority: 107 },
      { step: 'a', priority: 800 },
    ]);
  });

  test('is refused out of range or of a terminal task, and not audited when it was that already', async () => {
    const run = await plane.launch('one', { priority: 3 });
    const id = await taskOf(run);
    expect(await setPriority(id, 1001)).toMatchObject({ kind: 'InvalidInput', field: 'priority' });
    expect(await setPriority(crypto.randomUUID(), 1)).toMatchObject({ kind: 'NotFound' });
    expect(await setPriority(id, 3)).toMatchObject({ kind: 'TaskActionSuccess' });
    await plane.services.actions.cancelTask({ taskId: id }, actor);
    expect(await setPriority(id, 4)).toMatchObject({ kind: 'IllegalState', status: 'CANCELLED' });
    expect(await audits('task.set_priority')).toEqual([]);
  });
});

/** Begins actions while the mover is between taking a due task and making it ready. */
async function whileMoving<Outcome>(begin: () => Promise<Outcome>): Promise<Outcome> {
  const [begun] = await transaction(plane.database.db, async (tx) => {
    await tx.query({ text: 'select runplane.move_due_tasks(10)' });
    const action = begin();
    await plane.untilBlocked(1);
    // In an array, because a promise would be awaited here.
    return [action];
  });
  return begun;
}

test.each([{}, { serialKey: 'k' }])(
  'what the mover makes ready meanwhile waits for no time, and has the priority that it is given (%o)',
  async (more) => {
    const due = async () => {
      const run = await plane.launch('one', { availableAt: later, ...more });
      await plane.rows(
        `update runplane.delayed_tasks set available_at = runplane.clock() where run_id = $1`,
        [run],
      );
      await plane.rows(
        `update runplane.tasks t set available_at = d.available_at from runplane.delayed_tasks d where d.task_id = t.id`,
      );
      return run;
    };
    const first = await due();
    const id = await taskOf(first);
    expect(await whileMoving(() => runNow(id))).toMatchObject({ kind: 'IllegalState', status: 'ENQUEUED' });
    expect(await plane.rows('select priority from runplane.tasks where id = $1', [id])).toEqual([
      { priority: 0 },
    ]);
    expect(await claimRuns()).toEqual([first]);
    const [lease] = await plane.rows<{ attempt_id: string }>('select attempt_id from runplane.leases');
    await plane.report({ attemptId: lease?.attempt_id ?? '' }, { status: 'COMPLETED' });
    const second = await due();
    const other = await plane.launch('one');
    const secondId = await taskOf(second);
    expect(await whileMoving(() => setPriority(secondId, 5))).toMatchObject({ taskStatus: 'ENQUEUED' });
    expect(await claimRuns()).toEqual([second, other]);
  },
);

test('whatever order actions, claims, results and the mover come in, every task has its one place', async () => {
  const { database } = plane;
  const others = await Promise.all([1, 2].map(() => ControlPlane.start({ database, scheduler: true })));
  const planes = [plane, ...others];
  // So that most tasks stay where the actions find them.
  await plane.agent('a', { maxConcurrentTasks: 1 });
  const n = count({ test: 50, soak: 500 });
  const runs = await Promise.all(
    Array.from({ length: n }, (_, i) =>
      plane.launch(i % 5 === 0 ? 'two' : 'one', {
        ...(i % 2 === 0 && { availableAt: new Date(Date.now() + (i % 4 === 0 ? 150 : 3_600_000)) }),
        ...(i % 3 === 0 && { serialKey: `k${i % 2}` }),
      }),
    ),
  );
  const ids = await Promise.all(runs.map((run) => taskOf(run)));
  const known = new Set(['TaskActionSuccess', 'IllegalState']);
  const act = async (
    at: number,
    action: (actions: ControlPlane['services']['actions'], id: string) => Promise<{ kind: string }>,
  ) => {
    for (const [i, taskId] of ids.entries()) {
      const { services } = planes[(i + at) % planes.length] as ControlPlane;
      expect(known).toContain((await action(services.actions, taskId)).kind);
    }
  };
  let working = true;
  const work = async (from: ControlPlane) => {
    while (working) {
      for (const task of await from.claim(['a', 'b'], 1)) {
        const failed = { status: 'FAILED', error: { code: 'AGAIN' } } as const;
        await from.report(task, Math.random() < 0.5 ? failed : { status: 'COMPLETED' });
      }
    }
  };
  const workers = planes.map(work);
  await Promise.all([
    act(0, (actions, taskId) => actions.runTaskNow({ taskId }, actor)),
    act(1, (actions, taskId) =>
      actions.setTaskPriority({ taskId, priority: Math.floor(Math.random() * 100) }, actor),
    ),
    act(2, (actions, taskId) =>
      actions.setTaskPriority({ taskId, priority: -Math.floor(Math.random() * 100) }, actor),
    ),
    act(1, (actions, taskId) =>
      Math.random() < 0.3 ? actions.cancelTask({ taskId }, actor) : actions.runTaskNow({ taskId }, actor),
    ),
    act(2, (actions, taskId) => actions.retryTask({ taskId }, actor)),
  ]);
  working = false;
  await Promise.all(workers);
  await Promise.all(others.map((other) => other.services.stop()));
  expect(await plane.rows('select task_id from runplane.ready_tasks')).not.toEqual([]);
});
