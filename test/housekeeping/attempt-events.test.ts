import { afterEach, beforeEach, expect, test } from 'vitest';
import { CursorError } from '../../src/changelog/cursor.ts';
import { transaction } from '../../src/db/transaction.ts';
import {
  deleteOldEvents,
  findRunsOfOldEvents,
} from '../../src/housekeeping/retention/delete-attempt-events.sql.ts';
import { createRetention } from '../../src/housekeeping/retention/retention.ts';
import { setClockAhead } from '../support/clock.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { runRound } from '../support/duties.ts';
import { expectInvariants } from '../support/invariants.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

/** A round so many days later. */
async function retain(days: number, keptDays: { attemptEvents?: number; runs?: number }): Promise<void> {
  await setClockAhead(plane.database.db, `${days} days`);
  const duty = createRetention({
    db: plane.database.db,
    retentionDays: { runs: 0, events: 0, changeLog: 0, attemptEvents: 0, audit: 0, ...keptDays },
    onError: (error) => {
      throw error;
    },
    log: { info: () => {} },
  });
  await runRound(plane.database.db, 'retention', duty);
  await expectInvariants(plane.database.db);
}

/** An attempt that told so much. */
async function told(events: number) {
  const runId = await plane.launch('one');
  const [task] = await plane.claim(['a'], 1);
  if (!task) throw new Error('nothing to claim');
  for (let left = events; left > 0; left -= 500)
    await plane.tell(
      task,
      Array.from({ length: Math.min(left, 500) }, () => ({ type: 'log' })),
    );
  return { ...task, runId };
}
const left = async () =>
  Object.fromEntries(
    (
      await plane.rows<{ id: string; events: number }>(
        'select run_id as id, count(*)::int as events from runplane.attempt_events group by run_id',
      )
    ).map(({ id, events }) => [id, events]),
  );

test('events go so many days after their run ended, those of live work never', async () => {
  const over = await told(3);
  const live = await told(2);
  await plane.report(over, { status: 'COMPLETED' });
  await retain(6, { attemptEvents: 7 });
  expect(await left()).toEqual({ [over.runId]: 3, [live.runId]: 2 });
  await retain(8, { attemptEvents: 7 });
  expect(await left()).toEqual({ [live.runId]: 2 });
  await plane.report(live, { status: 'COMPLETED' });
  await retain(14, { attemptEvents: 7 });
  expect(await left()).toEqual({ [live.runId]: 2 });
  await retain(1000, { attemptEvents: 0 });
  expect(await left()).toEqual({ [live.runId]: 2 });
  await retain(1000, { attemptEvents: 7 });
  expect(await left()).toEqual({});
});

test('a stream cannot resume before what was deleted, and can after it', async () => {
  const before = await plane.services.changeLog.currentCursor();
  const task = await told(3);
  await plane.report(task, { status: 'COMPLETED' });
  await expect
    .poll(() =>
      plane.rows(
        'select id from runplane.attempt_events where xid >= pg_snapshot_xmin(pg_current_snapshot())',
      ),
    )
    .toEqual([]);
  const after = await plane.services.changeLog.currentCursor();
  await retain(8, { attemptEvents: 7 });
  const first = async (cursor: string) =>
    (await plane.services.changeLog.attemptEvents({ taskId: task.taskId }, cursor)).next();
  await expect(first(before)).rejects.toThrow(CursorError);
  expect((await first(after)).value).toMatchObject({ changes: [] });
});

test('they are deleted in batches of at most 5,000, run by run', async () => {
  const tasks = [await told(4_000), await told(3_000), await told(10)];
  for (const task of tasks) await plane.report(task, { status: 'COMPLETED' });
  await setClockAhead(plane.database.db, '8 days');
  const { db } = plane.database;
  const page = await findRunsOfOldEvents(db, 7, null);
  expect(page).toEqual({ ids: tasks.map(({ runId }) => runId), after: null });
  expect(await deleteOldEvents(db, 7, page.ids)).toEqual({ deleted: 5_000, all: false });
  expect(Object.values(await left()).toSorted((a, b) => a - b)).toEqual([10, 2_000]);
  expect(await deleteOldEvents(db, 7, page.ids)).toEqual({ deleted: 2_010, all: true });
});

test('a run that is retried while its events are looked at keeps them', async () => {
  const task = await told(2);
  await plane.report(task, { status: 'FAILED', error: { code: 'E', kind: 'PERMANENT' } });
  await setClockAhead(plane.database.db, '8 days');
  const { db } = plane.database;
  const page = await findRunsOfOldEvents(db, 7, null);
  await transaction(db, async (tx) => {
    await tx.query({ text: 'select from runplane.runs where id = $1 for update', values: [task.runId] });
    // Somebody is at work on the run.
    expect(await deleteOldEvents(db, 7, page.ids)).toMatchObject({ deleted: 0 });
  });
  await plane.services.actions.retryTask({ taskId: task.taskId }, actor);
  expect(await deleteOldEvents(db, 7, page.ids)).toMatchObject({ deleted: 0 });
  expect(await left()).toEqual({ [task.runId]: 2 });
});

test('with a run go the events of its attempts, in batches of their own', async () => {
  const task = await told(5_500);
  await plane.report(task, { status: 'COMPLETED' });
  await retain(31, { runs: 30 });
  expect(await left()).toEqual({});
  expect(await plane.rows('select attempt_id from runplane.attempt_event_counts')).toEqual([]);
  expect(await plane.rows('select id from runplane.runs')).toEqual([]);
});
