import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type EventScope,
  type LoggedEvent,
  readEventsSince,
} from '../../src/changelog/attempt-events/read-events.sql.ts';
import { createChangeLog } from '../../src/changelog/change-log.ts';
import { logStart } from '../../src/changelog/cursor.ts';
import { keysOfChange, keysOfEvent } from '../../src/changelog/interest.ts';
import { LogReader } from '../../src/changelog/log-reader.ts';
import {
  type ChangeScope,
  type LoggedChange,
  readPage,
  readSince,
} from '../../src/changelog/read-changes.sql.ts';
import { endOf, readSnapshot } from '../../src/changelog/snapshot.ts';
import type { Changes, TaskChange } from '../../src/changelog/types.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

const everything: ChangeScope = { of: 'BOTH', runIds: null, taskIds: null, correlationId: null };
const launch = (count: number) =>
  plane.services.intake.launchRuns(Array.from({ length: count }, () => ({ job: 'one' })));
const numbers = async (): Promise<number[]> =>
  (await plane.rows<{ id: number }>('select id from runplane.change_log order by id')).map(({ id }) => id);

test('what is too much for one reading comes in several, each thing once, with transactions that were open meanwhile', async () => {
  const db = plane.database.db;
  let snapshot = await readSnapshot(db);
  const from = await numbers();
  await launch(2);
  // One transaction is larger than a reading, and is read whole.
  await launch(20);
  const client = await db.pool.connect();
  await client.query('begin');
  await client.query(
    `insert into runplane.change_log (run_id, task_id, sequence, from_status, to_status, at, reason)
     select run_id, task_id, 1000, from_status, to_status, at, 'late' from runplane.change_log where task_id is not null order by id limit 1`,
  );
  for (let n = 0; n < 5; n++) await launch(1);

  const told: number[] = [];
  const sizes: number[] = [];
  const readAll = async (): Promise<void> => {
    for (;;) {
      const reading = await readSince(db, snapshot, [everything], 5);
      expect(reading.end >= endOf(reading.snapshot)).toBe(true);
      // What a snapshot sees is all that was told so far.
      const seen = (await readPage(db, logStart, reading.snapshot, 1000)).entries.map(({ number }) => number);
      told.push(...reading.entries.map(({ number }) => number));
      sizes.push(reading.entries.length);
      expect(seen.filter((id) => !from.includes(id)).toSorted((a, b) => a - b)).toEqual(
        told.toSorted((a, b) => a - b),
      );
      snapshot = reading.snapshot;
      if (reading.end === endOf(snapshot)) return;
    }
  };
  await readAll();
  expect(sizes.length).toBeGreaterThan(3);
  expect(Math.max(...sizes)).toBe(40);
  await client.query('commit');
  client.release();
  await launch(1);
  await readAll();
  expect(told.toSorted((a, b) => a - b)).toEqual((await numbers()).filter((id) => !from.includes(id)));
  await plane.rows(`delete from runplane.change_log where reason = 'late'`);
});

test('while a reader is behind, cursors of others that are not are good for streams and pages, which miss nothing', async () => {
  const { db } = plane.database;
  let mayRead = (): void => {};
  const held = new Promise<void>((resolve) => {
    mayRead = resolve;
  });
  const quiet = { db, onSignal: () => () => {}, onError: () => expect.unreachable() };
  const reader = new LogReader<LoggedChange, ChangeScope>({
    ...quiet,
    readSince: async (snapshot, scopes) => {
      await held;
      return readSince(db, snapshot, scopes, 2);
    },
    keysOf: keysOfChange,
  });
  const eventReader = new LogReader<LoggedEvent, EventScope>({
    ...quiet,
    readSince: (snapshot, scopes) => readEventsSince(db, snapshot, scopes),
    keysOf: keysOfEvent,
  });
  const behind = createChangeLog({ db, reader, eventReader, epoch: plane.database.installation.epoch });
  const all = { name: 'all', keys: null, scope: everything };
  const told: number[] = [];
  await reader.join({ push: (entries) => told.push(...entries.map(({ number }) => number)) }, all);
  const from = await numbers();
  for (let n = 0; n < 6; n++) await launch(1);
  const cursor = await plane.services.changeLog.currentCursor();

  const page = behind.taskChangePage({}, { after: cursor, first: 10, waitMs: 0 });
  const stream = behind.taskChanges({}, cursor);
  const greeting = stream.next();
  mayRead();
  await page;
  await greeting;
  await launch(1);
  await reader.read();
  const logged = (await numbers()).filter((id) => !from.includes(id));
  expect(told.toSorted((a, b) => a - b)).toEqual(logged);
  const [last] = await plane.rows<{ id: number }>(
    'select max(id) as id from runplane.change_log where task_id is not null',
  );
  for (let seen: number[] = []; !seen.includes(last?.id ?? 0); )
    seen = ((await stream.next()).value as Changes<TaskChange>).changes.map(({ number }) => number);
  await stream.return?.();
  reader.stop();
});
