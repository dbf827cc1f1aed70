import { afterEach, beforeEach, expect, test } from 'vitest';
import { readPage } from '../../src/changelog/read-changes.sql.ts';
import { readSnapshot } from '../../src/changelog/snapshot.ts';
import type { Changes } from '../../src/changelog/types.ts';
import { transaction } from '../../src/db/transaction.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

const tasks = (after: string) => plane.services.changeLog.taskChanges({}, after);
async function next<Change>(stream: AsyncIterator<Changes<Change>>): Promise<Changes<Change>> {
  const { done, value } = await stream.next();
  if (done) throw new Error('the stream is over');
  return value;
}

test('the cursor of a live message waits for transactions that began before what was told', async () => {
  const after = await plane.services.changeLog.currentCursor();
  const { db } = plane.database;
  const stream = tasks(after);
  let cursor = '';
  await transaction(db, async (tx) => {
    await tx.query({ text: 'select pg_current_xact_id()' });
    await Promise.all(Array.from({ length: 210 }, () => plane.launch('one')));
    for (let seen = 0; seen < 210; ) seen += (await next(stream)).changes.length;
    await plane.launch('one');
    for (let told = 0; told === 0; ) {
      const message = await next(stream);
      told = message.changes.length;
      ({ cursor } = message);
    }
    await tx.query({
      text: `insert into runplane.change_log (run_id, task_id, sequence, to_status, reason, at)
             select t.run_id, t.id, 2, 'ENQUEUED', 'late', runplane.clock() from runplane.tasks t limit 1`,
    });
  });
  await stream.return?.();
  const resumed = tasks(cursor);
  const reasons: (string | null)[] = [];
  for (let message = await next(resumed); ; message = await next(resumed)) {
    reasons.push(...message.changes.map(({ reason }) => reason));
    if (message.caughtUp) break;
  }
  expect(reasons).toContain('late');
  await resumed.return?.();
  await db.query({ text: `delete from runplane.change_log where reason = 'late'` });
});

test('a change whose transaction began before its predecessor comes after it, also across pages', async () => {
  const [launched] = await plane.services.intake.launchRuns([{ job: 'one' }]);
  if (launched?.kind !== 'LaunchRunSuccess') throw new Error('not launched');
  const log = (sequence: number) => ({
    text: `insert into runplane.change_log (run_id, sequence, to_status, reason, at) values ($1, $2, 'RUNNING', 'made', now())`,
    values: [launched.runId, sequence],
  });
  const { db } = plane.database;
  await transaction(db, async (early) => {
    await early.query({ text: 'select pg_current_xact_id()' });
    await transaction(db, (late) => late.query(log(2)));
    await early.query(log(3));
  });
  const snapshot = await readSnapshot(db);
  const seen: number[] = [];
  for (let position = { xid: 0n, id: 0 }; ; ) {
    const page = await readPage(db, position, snapshot, 1);
    for (const change of page.entries)
      if (change.taskId === null && !seen.includes(change.sequence)) seen.push(change.sequence);
    if (page.last === null) break;
    position = page.last;
  }
  expect(seen).toEqual([1, 2, 3]);
  await db.query({ text: `delete from runplane.change_log where reason = 'made'` });
});
