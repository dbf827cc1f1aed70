import { afterEach, beforeEach, expect, test } from 'vitest';
import type { AttemptEvent, AttemptEventsOf, Changes } from '../../src/changelog/types.ts';
import { transaction } from '../../src/db/transaction.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { openDatabase } from '../support/database.ts';
import { count } from '../support/tier.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job(
    'many',
    ['x', 'y', 'z'].map((name) => ({ name, agent: 'a' })),
  );
});
afterEach(() => plane.stop());

const open = (of: AttemptEventsOf, after: string) => plane.services.changeLog.attemptEvents(of, after);
const now = () => plane.services.changeLog.currentCursor();
const log = (...data: string[]) => data.map((text) => ({ type: 'log', data: text }));

/** The next event of an attempt, as an append writes it. */
const lateEvent = ({ attemptId, taskId, runId }: Pick<Assignment, 'attemptId' | 'taskId' | 'runId'>) => ({
  text: `
with counted as (
  update runplane.attempt_event_counts set last_sequence = last_sequence + 1, bytes = bytes + 1 where attempt_id = $1 returning last_sequence)
insert into runplane.attempt_events (run_id, task_id, attempt_id, sequence, type, at, bytes)
select $3, $2, $1, last_sequence, 'late', runplane.clock(), 1 from counted`,
  values: [attemptId, taskId, runId],
});

test('a later event whose transaction began first comes after the earlier one, also across pages', async () => {
  await plane.launch('many');
  const [task] = await plane.claim(['a'], 1);
  if (!task) throw new Error('nothing to claim');
  const after = await now();
  await plane.tell(task, log(...Array.from({ length: 199 }, (_, i) => `${i}`)));
  const { db } = plane.database;
  await transaction(db, async (early) => {
    await early.query({ text: 'select pg_current_xact_id()' });
    await plane.tell(task, log('the 200th'));
    await early.query(lateEvent(task));
  });
  const stream = await open({ runId: task.runId }, after);
  const { value } = (await stream.next()) as IteratorYieldResult<Changes<AttemptEvent>>;
  expect(value.changes.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 201 }, (_, i) => i + 1));
  await stream.return?.();
});

test('nothing is missed and attempts stay in order, whatever order transactions commit in', async () => {
  const writers = 6;
  const perWriter = count({ test: 60, soak: 2000 });
  const start = await now();
  await plane.launch('many');
  const tasks = await plane.claim(['a']);
  for (const task of tasks) await plane.tell(task, log('first'));
  const db = openDatabase(plane.database.url, writers);
  // Two writers for each attempt, whose transactions commit late and in any order, while the attempts append as well.
  const write = async (task: Assignment): Promise<void> => {
    for (let i = 0; i < perWriter; i++) {
      await transaction(db, async (tx) => {
        await tx.query({ text: 'select pg_current_xact_id()' });
        await tx.query({ text: 'select pg_sleep($1)', values: [Math.random() * 0.004] });
        await tx.query(lateEvent(task));
        await tx.query({ text: 'select pg_sleep($1)', values: [Math.random() * 0.004] });
      });
      plane.services.signal.changed('attemptEvents');
      if (i % 10 === 0) await plane.tell(task, log('told'));
    }
  };
  const told = Math.ceil(perWriter / 10);
  const ofTask = 2 * (perWriter + told) + 1;
  const writing = Promise.all(Array.from({ length: writers }, (_, w) => write(tasks[w % 3] as Assignment)));

  /** Reads with random reconnects from the last cursor, until every event was seen. */
  const follow = async (of: AttemptEventsOf, total: number): Promise<number> => {
    const seen = new Set<number>();
    const last = new Map<string, number>();
    let cursor = start;
    while (seen.size < total) {
      for await (const message of await open(of, cursor)) {
        cursor = message.cursor;
        for (const event of message.changes) {
          if (seen.has(event.number)) continue;
          seen.add(event.number);
          expect(event.sequence).toBe((last.get(event.attemptId) ?? 0) + 1);
          last.set(event.attemptId, event.sequence);
        }
        if (seen.size === total || Math.random() < 0.2) break;
      }
    }
    return seen.size;
  };
  const { runId, taskId, attemptId } = tasks[0] as Assignment;
  await Promise.all([
    ...Array.from({ length: 3 }, () => follow({ runId }, 3 * ofTask)),
    ...Array.from({ length: 2 }, () => follow({ taskId }, ofTask)),
    follow({ attemptId }, ofTask),
  ]);
  await writing;
  await db.close();
});
