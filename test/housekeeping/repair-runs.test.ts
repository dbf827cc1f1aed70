import { describe, expect, test } from 'vitest';
import { expectInvariants } from '../support/invariants.ts';
import { repaired } from '../support/repaired.ts';

const story = repaired();
const { keepHouse, changes, taskOf, complete, forgetEnd } = story;

describe('runs', () => {
  test('one whose tasks are all over ends as they did, and its stream hears of it', async () => {
    const run = await story.plane.launch('one');
    await complete();
    await forgetEnd(run);
    expect(await keepHouse()).toEqual({ runs: 1 });
    expect(await story.plane.run(run)).toEqual({ status: 'COMPLETED', openTasks: 0 });
    expect(await changes('run_id', run)).toEqual(['QUEUED', 'RUNNING', 'COMPLETED']);
    expect(await keepHouse()).toEqual({});
  });

  test('one that counts its tasks wrongly counts them anew, and ends when they are over', async () => {
    const [low, high, lost] = [
      await story.plane.launch('two'),
      await story.plane.launch('two'),
      await story.plane.launch('one'),
    ];
    await complete();
    await story.plane.rows('update runplane.runs set open_tasks = 1, blocked_tasks = 1 where id = $1', [
      high,
    ]);
    await story.plane.rows(
      'update runplane.runs set total_tasks = 9, open_tasks = 7, blocked_tasks = 3 where id = $1',
      [low],
    );
    await story.plane.claim(['a'], 3);
    await story.plane.rows('update runplane.runs set open_tasks = 0 where id = $1', [lost]);
    expect(await keepHouse()).toEqual({ counters: 3 });
    expect((await story.plane.run(high)).openTasks).toBe(2);
    expect((await story.plane.run(lost)).openTasks).toBe(1);
    await expectInvariants(story.plane.database.db);
  });

  test('one that ended although a task of it is open goes on', async () => {
    const run = await story.plane.launch('one');
    await story.plane.rows(
      `with r as (update runplane.runs set status = 'COMPLETED', open_tasks = 0, finished_at = runplane.clock(), sequence = 2 where id = $1)
       insert into runplane.change_log (run_id, sequence, from_status, to_status, at) values ($1, 2, 'QUEUED', 'COMPLETED', runplane.clock())`,
      [run],
    );
    expect(await keepHouse()).toEqual({ counters: 1 });
    expect(await story.plane.run(run)).toEqual({ status: 'RUNNING', openTasks: 1 });
    await complete();
    expect(await changes('run_id', run)).toEqual([
      'QUEUED',
      'COMPLETED',
      'RUNNING HOUSEKEEPING',
      'COMPLETED',
    ]);
  });
});

describe('a step that is blocked though what it waited for is over', () => {
  const forgetUnblocking = async (runId: string) => {
    const b = await taskOf(runId, 'b');
    await story.plane.rows('delete from runplane.ready_tasks where task_id = $1', [b]);
    await story.plane.rows('delete from runplane.change_log where task_id = $1 and sequence > 1', [b]);
    await story.plane.rows('delete from runplane.dead_letters where task_id = $1', [b]);
    await story.plane.rows(
      `update runplane.tasks set state = 'BLOCKED', sequence = 1, finished_at = null, error_code = null, error_kind = null,
         error_message = null where id = $1`,
      [b],
    );
    await story.plane.rows('update runplane.runs set open_tasks = 1, blocked_tasks = 1 where id = $1', [
      runId,
    ]);
  };

  test('is enqueued', async () => {
    const run = await story.plane.launch('two');
    await complete();
    await forgetUnblocking(run);
    expect(await keepHouse()).toEqual({ unblockedTasks: 1 });
    expect(await story.plane.steps(run)).toEqual({ a: 'COMPLETED', b: 'ENQUEUED' });
    await complete();
    expect((await story.plane.run(run)).status).toBe('COMPLETED');
  });

  test('fails where what it waited for failed, and so does its run', async () => {
    const run = await story.plane.launch('two');
    const [task] = await story.plane.claim(['a']);
    await story.plane.report(task as never, { status: 'FAILED', error: { code: 'NO', kind: 'PERMANENT' } });
    await forgetEnd(run);
    await forgetUnblocking(run);
    expect(await keepHouse()).toEqual({ unblockedTasks: 1 });
    expect(await story.plane.steps(run)).toEqual({ a: 'FAILED', b: 'FAILED' });
    expect((await story.plane.run(run)).status).toBe('FAILED');
  });
});

test('the steps of a run with spawned tasks are counted anew, and what waited for them in vain goes on', async () => {
  const run = await story.plane.launch('two');
  const [task] = await story.plane.claim(['a'], 1);
  if (!task) throw new Error('nothing to claim');
  await story.plane.report(task, { status: 'COMPLETED', spawn: [{ step: 'c', agent: 'a' }] });
  await story.plane.rows('update runplane.run_steps set open = open + 1 where run_id = $1', [run]);
  await complete();
  expect(await story.plane.steps(run)).toEqual({ a: 'COMPLETED', b: 'BLOCKED', c: 'COMPLETED' });
  expect(await keepHouse()).toEqual({ counters: 1, unblockedTasks: 1 });
  expect(await story.plane.steps(run)).toMatchObject({ b: 'ENQUEUED' });
  await expectInvariants(story.plane.database.db);
  expect(await keepHouse('2 hours')).toEqual({});
});
