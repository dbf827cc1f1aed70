import { describe, expect, test } from 'vitest';
import { newUuid } from '../../src/domain/ids.ts';
import type { EndedAttempt } from '../../src/domain/work-observer.ts';
import { setClockAhead } from '../support/clock.ts';
import { actor } from '../support/control-plane.ts';
import { runRound } from '../support/duties.ts';
import { expectInvariants } from '../support/invariants.ts';
import { repaired } from '../support/repaired.ts';
import { silentObserver } from '../support/silent-observer.ts';

const story = repaired();
const { keepHouse, changes, taskOf, complete } = story;

describe('an open task without a place', () => {
  test('is ready again, and its change log says that nobody but housekeeping did it', async () => {
    const run = await story.plane.launch('one');
    await story.plane.rows('delete from runplane.ready_tasks');
    expect(await keepHouse()).toEqual({ placelessTasks: 1 });
    expect(await changes('task_id', await taskOf(run))).toEqual(['ENQUEUED', 'ENQUEUED HOUSEKEEPING']);
    await complete();
    expect((await story.plane.run(run)).status).toBe('COMPLETED');
  });

  test('whose lease vanished has lost that attempt, whose late result still counts', async () => {
    const run = await story.plane.launch('one');
    const [task] = await story.plane.claim(['a']);
    await story.plane.report(task as never, { status: 'FAILED', error: { code: 'AGAIN' } });
    const [second] = await story.plane.claim(['a']);
    await story.plane.rows('delete from runplane.leases');
    expect(await keepHouse()).toEqual({ placelessTasks: 1 });
    const attempts = await story.plane.rows(
      'select id, number, status, counted from runplane.attempts where run_id = $1 order by number',
      [run],
    );
    expect(attempts).toEqual([
      { id: task?.attemptId, number: 1, status: 'FAILED', counted: true },
      { id: second?.attemptId, number: 2, status: 'LOST', counted: false },
    ]);
    await expectInvariants(story.plane.database.db);
    expect(await story.plane.report(second as never, { status: 'COMPLETED' })).toMatchObject({
      outcome: 'APPLIED',
    });
  });

  test('is told of with its correlation id, when its lease vanished', async () => {
    await story.plane.launch('one', { correlationId: 'c-1' });
    const [task] = await story.plane.claim(['a']);
    await story.plane.rows('delete from runplane.leases');
    await setClockAhead(story.plane.database.db, '1 hour');
    const told: EndedAttempt[] = [];
    const { duty, lines } = story.create({
      ...silentObserver,
      recorded: (attempts) => void told.push(...attempts),
    });
    await runRound(story.plane.database.db, 'repair', duty);
    const lost = { correlationId: 'c-1', number: 1, status: 'LOST' };
    expect(told).toMatchObject([{ ...lost, attemptId: task?.attemptId }]);
    expect(lines).toContainEqual({
      fields: expect.objectContaining(lost),
      message: 'an attempt lost its lease',
    });
    await complete();
  });

  test('that was to be cancelled is cancelled', async () => {
    const run = await story.plane.launch('one');
    const [task] = await story.plane.claim(['a']);
    await story.plane.services.actions.cancelTask({ taskId: task?.taskId ?? '' }, actor);
    await story.plane.rows('delete from runplane.leases');
    expect(await keepHouse()).toEqual({ placelessTasks: 1 });
    expect(await story.plane.steps(run)).toEqual({ a: 'CANCELLED' });
    expect((await story.plane.run(run)).status).toBe('CANCELLED');
  });

  test('waits again for its time where that is to come', async () => {
    const run = await story.plane.launch('one', { availableAt: new Date(Date.now() + 86_400_000) });
    await story.plane.rows('delete from runplane.delayed_tasks');
    expect(await keepHouse()).toEqual({ placelessTasks: 1 });
    const [delayed] = await story.plane.rows<{ hours: number }>(
      'select round(extract(epoch from available_at - runplane.clock()) / 3600)::int as hours from runplane.delayed_tasks where run_id = $1',
      [run],
    );
    expect(delayed?.hours).toBe(23);
  });

  test('that is the first of its serial key is ready again, before the others of the key', async () => {
    const [first, second] = [
      await story.plane.launch('one', { serialKey: 'k' }),
      await story.plane.launch('one', { serialKey: 'k' }),
    ];
    await story.plane.rows('delete from runplane.ready_tasks');
    expect(await keepHouse()).toEqual({ placelessTasks: 1 });
    const claimed = await story.plane.claim(['a']);
    expect(claimed.map(({ runId }) => runId)).toEqual([first]);
    for (const task of claimed) await story.plane.report(task, { status: 'COMPLETED' });
    expect((await story.plane.claim(['a'])).map(({ runId }) => runId)).toEqual([second]);
  });

  test('is found although its last change is not kept any more', async () => {
    const run = await story.plane.launch('one');
    await story.plane.rows('delete from runplane.ready_tasks');
    await story.plane.rows('delete from runplane.change_log');
    expect(await keepHouse()).toEqual({ placelessTasks: 1 });
    await complete();
    expect((await story.plane.run(run)).status).toBe('COMPLETED');
    await story.plane.rows(`update runplane.installation set log_deleted_xid = '1'`);
  });

  test('whose row nobody would find gets one that is found', async () => {
    const run = await story.plane.launch('one');
    await story.plane.rows('update runplane.ready_tasks set priority_key = 5');
    expect(await keepHouse()).toEqual({ placelessTasks: 1, surplusPlaces: 1 });
    await complete();
    expect((await story.plane.run(run)).status).toBe('COMPLETED');
  });
});

describe('a place that is too many', () => {
  const makeReady = (taskId: string) =>
    story.plane.rows(
      `insert into runplane.ready_tasks (agent_id, priority_key, turn, rank, task_id, run_id, sequence, attempts, ready_at)
       select t.agent_id, -t.priority, t.turn, t.rank, t.id, t.run_id, t.sequence, 0, runplane.clock() from runplane.tasks t where t.id = $1`,
      [taskId],
    );

  test('goes: ready beside a lease, delayed beside ready', async () => {
    await story.plane.launch('one');
    await story.plane.launch('one');
    const [task] = await story.plane.claim(['a'], 1);
    await makeReady(task?.taskId ?? '');
    await story.plane.rows(
      `insert into runplane.delayed_tasks (available_at, task_id, run_id, agent_id, sequence, attempts, reason, since)
       select t.available_at, t.id, t.run_id, t.agent_id, 1, 0, 'NOT_BEFORE', runplane.clock() from runplane.tasks t where t.id <> $1`,
      [task?.taskId],
    );
    expect(await keepHouse()).toEqual({ surplusPlaces: 2 });
    await expectInvariants(story.plane.database.db);
    expect(await story.plane.report(task as never, { status: 'COMPLETED' })).toMatchObject({
      outcome: 'APPLIED',
    });
    await complete();
  });

  test('goes: ready, delayed or behind a key though the task is over; the next of the key gets its turn', async () => {
    await story.plane.launch('one', { serialKey: 'k' });
    await complete();
    const [over] = await story.plane.rows<{ id: string }>('select id from runplane.tasks');
    await story.plane.rows(
      `insert into runplane.serial_tasks (agent_id, serial_key, rank, task_id, run_id, sequence, attempts, since)
       select agent_id, serial_key, 1, id, run_id, 2, 1, runplane.clock() from runplane.tasks`,
    );
    await makeReady(over?.id ?? '');
    const next = await story.plane.launch('one', { serialKey: 'k' });
    expect(await keepHouse()).toEqual({ surplusPlaces: 2 });
    expect((await story.plane.claim(['a'])).map(({ runId }) => runId)).toEqual([next]);
  });

  test('goes: one of a task that does not exist', async () => {
    await story.plane.launch('one');
    const task = newUuid();
    await story.plane.rows(
      `insert into runplane.ready_tasks (agent_id, priority_key, turn, rank, task_id, run_id, sequence, attempts, ready_at)
       select agent_id, 0, 99, 99, $1::uuid, $2::uuid, 1, 0, ready_at from runplane.ready_tasks`,
      [task, newUuid()],
    );
    expect(await keepHouse()).toEqual({ surplusPlaces: 1 });
    await complete();
  });
});

test('a lease of a task that is over is given up, and its attempt is recorded as cancelled', async () => {
  const run = await story.plane.launch('one');
  await complete();
  await story.plane.rows(
    `insert into runplane.leases (attempt_id, task_id, run_id, agent_id, claim_seq, number, sequence, worker_id, lease_seconds, started_at, expires_at)
     select $1::uuid, t.id, t.run_id, t.agent_id, 99, 2, 3, $1::uuid, 60, runplane.clock(), runplane.clock() + interval '1 year' from runplane.tasks t`,
    [newUuid()],
  );
  expect(await keepHouse()).toEqual({ leases: 1 });
  expect(await story.plane.rows('select number, status from runplane.attempts order by number')).toEqual([
    { number: 1, status: 'COMPLETED' },
    { number: 2, status: 'CANCELLED' },
  ]);
  expect((await story.plane.run(run)).status).toBe('COMPLETED');
});
