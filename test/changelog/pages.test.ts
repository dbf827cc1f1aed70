import { afterEach, beforeEach, expect, test } from 'vitest';
import { CursorError, encodeCursor } from '../../src/changelog/cursor.ts';
import type { Changes, RunChange } from '../../src/changelog/types.ts';
import { transaction } from '../../src/db/transaction.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { writeLate } from '../support/late-writers.ts';
import { count } from '../support/tier.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  await plane.job('two', [{ name: 'only', agent: 'a' }]);
});
afterEach(() => plane.stop());

const page = (after: string | null, more: { first?: number; waitMs?: number; filter?: object } = {}) =>
  plane.services.changeLog.taskChangePage(more.filter ?? {}, {
    after,
    first: more.first ?? 50,
    waitMs: more.waitMs ?? 0,
  });
const launched = async (job = 'one') => {
  const [outcome] = await plane.services.intake.launchRuns([{ job }]);
  if (outcome?.kind !== 'LaunchRunSuccess') throw new Error('not launched');
  return outcome;
};

test('pages have the whole log, oldest first, each change once, and go on where the last one ended', async () => {
  const runs: string[] = [];
  for (let i = 0; i < 7; i++) runs.push(await plane.launch('one'));
  const seen: string[] = [];
  const sizes: number[] = [];
  let cursor: string | null = null;
  for (;;) {
    const { changes, cursor: next, caughtUp } = await page(cursor, { first: 3 });
    seen.push(...changes.map(({ runId }) => runId));
    sizes.push(changes.length);
    cursor = next;
    if (caughtUp) break;
  }
  expect(seen).toEqual(runs);
  expect(sizes).toEqual([3, 3, 1]);
  expect(await page(cursor)).toMatchObject({ changes: [], caughtUp: true });
  const last = await plane.launch('one');
  expect((await page(cursor)).changes.map(({ runId }) => runId)).toEqual([last]);
});

test('a filter chooses as on a stream, and a rare match is found over many pages of the log', async () => {
  const after = await plane.services.changeLog.currentCursor();
  await plane.services.intake.launchRuns(Array.from({ length: 1000 }, () => ({ job: 'one' })));
  const rare = await plane.launch('two');
  const { changes, caughtUp } = await page(after, { filter: { jobs: ['two'] }, first: 1 });
  expect(changes).toMatchObject([{ runId: rare, step: 'only', toStatus: 'ENQUEUED' }]);
  expect(caughtUp).toBe(true);
  expect((await page(after, { filter: { jobs: [] } })).changes).toEqual([]);
});

test('a page waits for its first change, and no longer', async () => {
  const { cursor } = await page(null);
  const waiting = page(cursor, { waitMs: 25_000, filter: { jobs: ['two'] } });
  await plane.launch('one');
  const run = await plane.launch('two');
  expect((await waiting).changes).toMatchObject([{ runId: run }]);
  expect((await page(cursor, { waitMs: 25_000 })).changes).toHaveLength(2);
  const nothing = await page(cursor, { waitMs: 20, filter: { jobs: [] } });
  expect(nothing).toMatchObject({ changes: [], caughtUp: true });
  // Its cursor has moved past what did not match.
  expect((await page(nothing.cursor)).changes).toEqual([]);
});

test('a wait ends when the client leaves and when the process stops', async () => {
  const { cursor } = await page(null);
  const left = new AbortController();
  const abandoned = plane.services.changeLog.runChangePage(
    {},
    { after: cursor, first: 1, waitMs: 25_000, clientGone: left.signal },
  );
  left.abort();
  expect(await abandoned).toMatchObject({ changes: [] });
  const waiting = page(cursor, { waitMs: 25_000 });
  await plane.services.drain();
  expect(await waiting).toMatchObject({ changes: [] });
  expect(await page(cursor, { waitMs: 25_000 })).toMatchObject({ changes: [] });
});

test('what commits late is in the next page, and what was told beside it is not told again', async () => {
  await plane.untilLogIsPast();
  const { runId } = await launched();
  const { cursor } = await page(null);
  const log = (sequence: number) => ({
    text: `insert into runplane.change_log (run_id, sequence, to_status, reason, at) values ($1, $2, 'RUNNING', 'made', runplane.clock())`,
    values: [runId, sequence],
  });
  const read = async (after: string, first: number) => {
    const found = await plane.services.changeLog.runChangePage({}, { after, first, waitMs: 0 });
    return { after: found.cursor, sequences: found.changes.map(({ sequence }) => sequence) };
  };
  const { db } = plane.database;
  let beside = { after: cursor, sequences: [] as number[] };
  await transaction(db, async (late) => {
    await late.query({ text: 'select pg_current_xact_id()' });
    await transaction(db, (early) => early.query(log(2)));
    beside = await read(cursor, 50);
    expect(beside.sequences).toEqual([2]);
    // Nobody spins on what was told while a transaction stays open.
    expect((await read(beside.after, 50)).sequences).toEqual([]);
    await late.query(log(3));
  });
  expect((await read(beside.after, 50)).sequences).toEqual([3]);
  // A change comes before its successor, whichever transaction began first and however short the page is.
  expect((await read(cursor, 1)).sequences).toEqual([2, 3]);
  await db.query({ text: `delete from runplane.change_log where reason = 'made'` });
});

test('cursors that are none, of another database, ahead of it or older than what is kept are refused', async () => {
  const { epoch } = plane.database.installation;
  const before = await plane.services.changeLog.currentCursor();
  await plane.launch('one');
  await plane.rows(
    `update runplane.installation set log_deleted_xid = (select max(xid) from runplane.change_log), log_deleted_id = 1000`,
  );
  const xid = BigInt(
    (await plane.rows<{ xid: string }>('select pg_current_xact_id()::text as xid'))[0]?.xid ?? 0,
  );
  for (const [cursor, code] of [
    ['nonsense', 'INVALID_CURSOR'],
    [encodeCursor(epoch, { xid, id: 0, open: [xid] }), 'INVALID_CURSOR'],
    [encodeCursor(epoch, { xid, id: 0, open: [xid - 1n, xid - 2n] }), 'INVALID_CURSOR'],
    [encodeCursor('ffffffff-0000', { xid: 1n, id: 0 }), 'CURSOR_EXPIRED'],
    [encodeCursor(epoch, { xid: 2n ** 40n, id: 0 }), 'CURSOR_EXPIRED'],
    [encodeCursor(epoch, { xid, id: 0, open: [1n] }), 'CURSOR_EXPIRED'],
    [before, 'CURSOR_EXPIRED'],
  ] as const) {
    await expect(page(cursor), cursor).rejects.toMatchObject({ constructor: CursorError, code });
  }
  // Without a cursor it begins with what is kept.
  expect((await page(null)).changes).toHaveLength(1);
});

test('between pages and streams nothing is missed, whatever order transactions commit in', async () => {
  const { runId, cursor: start } = await launched();
  const perWriter = count({ test: 60, soak: 2000 });
  const writers = await writeLate(plane, runId, { writers: 6, perWriter });

  /** Pages, then a stream from the page's cursor, then pages from the stream's, until every change was seen. */
  const follow = async (): Promise<void> => {
    const seen = new Set<number>();
    let cursor: string = start;
    let lastSequence = 1;
    const take = (message: Changes<RunChange>): void => {
      cursor = message.cursor;
      for (const change of message.changes) {
        if (change.reason === null || seen.has(change.number)) continue;
        seen.add(change.number);
        expect(change.sequence).toBe(++lastSequence);
      }
    };
    while (seen.size < writers.total) {
      for (let pages = Math.ceil(Math.random() * 6); pages > 0 && seen.size < writers.total; pages--) {
        const first = Math.ceil(Math.random() * 20);
        take(await plane.services.changeLog.runChangePage({}, { after: cursor, first, waitMs: 1_000 }));
      }
      if (seen.size === writers.total) break;
      for await (const message of plane.services.changeLog.runChanges({}, cursor)) {
        take(message);
        if (seen.size === writers.total || Math.random() < 0.2) break;
      }
    }
  };
  await Promise.all(Array.from({ length: 6 }, follow));
  await writers.cleanUp();
});

test('read the position, then the present, then go on after it: nothing is missed while others are at work', async () => {
  const total = count({ test: 60, soak: 1000 });
  /** Launches and executes its share, while the others do. */
  const atWork = async (): Promise<void> => {
    for (let i = 0; i < total / 4; i++) {
      await plane.launch('one');
      for (const task of await plane.claim(['a'], 3)) await plane.report(task, { status: 'COMPLETED' });
    }
  };
  const writing = Promise.all(Array.from({ length: 4 }, atWork));
  /** How all tasks are: as they were at some moment, and as what came after it says. */
  const follow = async (): Promise<void> => {
    const cursor = await plane.services.changeLog.currentCursor();
    const present = await plane.rows<{ id: string; done: boolean }>(
      'select id, finished_at is not null as done from runplane.tasks',
    );
    const done = new Map(present.map((task) => [task.id, task.done]));
    const isOver = () => done.size === total && [...done.values()].every(Boolean);
    if (isOver()) return;
    for await (const { changes } of plane.services.changeLog.taskChanges({}, cursor)) {
      for (const { taskId, toStatus } of changes)
        done.set(taskId, done.get(taskId) || toStatus === 'COMPLETED');
      if (isOver()) return;
    }
  };
  await Promise.all([...Array.from({ length: 4 }, follow), writing.then(follow)]);
});
