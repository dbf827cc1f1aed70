import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CursorError } from '../../src/changelog/cursor.ts';
import type { AttemptEvent, AttemptEventsOf, Changes } from '../../src/changelog/types.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { nilUuid } from '../../src/domain/ids.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  await plane.job(
    'many',
    ['x', 'y', 'z'].map((name) => ({ name, agent: 'a' })),
  );
});
afterEach(() => plane.stop());

type Stream = AsyncIterator<Changes<AttemptEvent>>;
const open = (of: AttemptEventsOf, after: string | null = null) =>
  plane.services.changeLog.attemptEvents(of, after);
const now = () => plane.services.changeLog.currentCursor();
const texts = (events: readonly AttemptEvent[]) => events.map(({ data }) => data);
const log = (...data: string[]) => data.map((text) => ({ type: 'log', data: text }));

async function start(job = 'one'): Promise<Assignment[]> {
  await plane.launch(job);
  return plane.claim(['a']);
}
async function one(): Promise<Assignment> {
  const [task] = await start();
  if (!task) throw new Error('nothing to claim');
  return task;
}
async function next(stream: Stream): Promise<Changes<AttemptEvent>> {
  const { done, value } = await stream.next();
  if (done) throw new Error('the stream is over');
  return value;
}
async function nextEvents(stream: Stream): Promise<AttemptEvent[]> {
  for (;;) {
    const { changes } = await next(stream);
    if (changes.length > 0) return changes;
  }
}
async function rest(stream: AsyncIterable<Changes<AttemptEvent>>): Promise<AttemptEvent[]> {
  const events: AttemptEvent[] = [];
  for await (const { changes } of stream) events.push(...changes);
  return events;
}

/** A stream that is greeted: it has everything from now on. */
async function greeted(of: AttemptEventsOf) {
  const stream = await open(of);
  await next(stream);
  return stream;
}

test('a stream without a cursor starts now, its first message comes at once', async () => {
  const task = await one();
  await plane.tell(task, log('before'));
  const stream = await open({ attemptId: task.attemptId });
  expect(await next(stream)).toMatchObject({ caughtUp: true, changes: [] });
  await plane.tell(task, log('after'));
  expect(await nextEvents(stream)).toMatchObject([
    { sequence: 2, attemptId: task.attemptId, taskId: task.taskId, type: 'log', data: 'after' },
  ]);
  await stream.return?.();
  expect(await stream.next()).toMatchObject({ done: true });
});

test('streams of a run, of a task and of an attempt have what is of these', async () => {
  const after = await now();
  const [x, y] = await start('many');
  const other = await one();
  if (!x || !y) throw new Error('nothing to claim');
  for (const task of [x, y, other]) await plane.tell(task, log(`${task.step} 1`));
  await plane.expire(x);
  await plane.sweep(x);
  const [again] = await plane.claim(['a']);
  if (!again) throw new Error('nothing to claim');
  expect(again.taskId).toBe(x.taskId);
  await plane.tell(again, log('x 2'));
  const read = async (of: AttemptEventsOf): Promise<unknown[]> => {
    const stream = await open(of, after);
    const { changes } = await next(stream);
    await plane.tell(again, log('live'));
    await plane.tell(y, log('live y'));
    if ('attemptId' in of && of.attemptId === x.attemptId) return texts(changes);
    const live = await nextEvents(stream);
    await stream.return?.();
    return [...texts(changes), ...texts(live).slice(0, 1)];
  };
  expect(await read({ attemptId: x.attemptId })).toEqual(['x 1']);
  expect(await read({ attemptId: again.attemptId })).toEqual(['x 2', 'live', 'live']);
  expect((await read({ taskId: x.taskId })).slice(0, 2)).toEqual(['x 1', 'x 2']);
  expect((await read({ runId: x.runId })).slice(0, 3)).toEqual(['x 1', 'y 1', 'x 2']);
});

test('a stream completes when what it is of is over, after everything that was told before', async () => {
  const task = await one();
  const streams = await Promise.all(
    [{ runId: task.runId }, { taskId: task.taskId }, { attemptId: task.attemptId }].map(greeted),
  );
  const all = streams.map(rest);
  await plane.tell(task, log('1', '2'));
  await plane.tell(task, log('3'));
  await plane.report(task, { status: 'COMPLETED' });
  for (const events of await Promise.all(all)) expect(texts(events)).toEqual(['1', '2', '3']);
  // It is over already, but everything that is kept comes.
  const again = await rest(await open({ runId: task.runId }, await startOf(task)));
  expect(texts(again)).toEqual(['1', '2', '3']);
  expect(await rest(await open({ runId: task.runId }))).toEqual([]);
  for (const of of [{ runId: nilUuid }, { taskId: nilUuid }, { attemptId: nilUuid }])
    expect(await rest(await open(of))).toEqual([]);
});

test('a stream of an attempt completes when it ends, one of its task only when that is terminal', async () => {
  const task = await one();
  const ofAttempt = rest(await greeted({ attemptId: task.attemptId }));
  const ofTask = rest(await greeted({ taskId: task.taskId }));
  await plane.tell(task, log('failed'));
  await plane.report(task, { status: 'FAILED', error: { code: 'AGAIN' } });
  expect(texts(await ofAttempt)).toEqual(['failed']);
  const [again] = await plane.claim(['a']);
  if (!again) throw new Error('nothing to claim');
  await plane.tell(again, log('done'));
  await plane.report(again, { status: 'COMPLETED' });
  expect(texts(await ofTask)).toEqual(['failed', 'done']);
});

test('what waits for an event ends at once when its client leaves', async () => {
  const stream = await open({ runId: (await one()).runId });
  await next(stream);
  const waiting = stream.next();
  await stream.return?.();
  expect(await waiting).toMatchObject({ done: true });
});

test('many and large events come in messages that are small, also to a reader that falls behind', async () => {
  const task = await one();
  const stream = await open({ taskId: task.taskId });
  await next(stream);
  const large = 'x'.repeat(60_000);
  for (let i = 0; i < 20; i++) await plane.tell(task, log(large));
  for (let i = 0; i < 2; i++)
    await plane.tell(
      task,
      Array.from({ length: 500 }, () => ({ type: 'log', data: 'small' })),
    );
  const seen: number[] = [];
  while (seen.length < 1020) {
    const { changes } = await next(stream);
    expect(JSON.stringify(changes).length).toBeLessThan(400_000);
    for (const { sequence } of changes) if (!seen.includes(sequence)) seen.push(sequence);
  }
  expect(seen).toEqual(Array.from({ length: 1020 }, (_, i) => i + 1));
  await stream.return?.();
});

test('events of one replica are seen by subscribers of another, and wake nobody who waits for work', async () => {
  const task = await one();
  const other = await ControlPlane.start({ database: plane.database });
  const stream = await other.services.changeLog.attemptEvents({ runId: task.runId }, null);
  await next(stream);
  let changes = 0;
  const stopCounting = other.services.signal.onChange(() => changes++);
  await plane.tell(task, log('heard'));
  expect(texts(await nextEvents(stream))).toEqual(['heard']);
  expect(changes).toBe(0);
  stopCounting();
  await stream.return?.();
  await other.services.stop();
});

test('cursors are refused as of the change log, and when events after them were deleted', async () => {
  const task = await one();
  const before = await now();
  await expect(open({ runId: task.runId }, 'nonsense')).rejects.toMatchObject({ code: 'INVALID_CURSOR' });
  await plane.tell(task, log('old'));
  await plane.rows(
    `with gone as (delete from runplane.attempt_events returning run_id, xid)
     update runplane.runs r set events_deleted_xid = g.xid from gone g where r.id = g.run_id`,
  );
  await expect(next(await open({ runId: task.runId }, before))).rejects.toMatchObject({
    constructor: CursorError,
    code: 'CURSOR_EXPIRED',
    restartFrom: expect.any(String),
  });
});

async function startOf({ runId }: { runId: string }): Promise<string> {
  const { changes, cursor } = await plane.services.changeLog.runChangePage(
    { ids: [runId] },
    { after: null, first: 1, waitMs: 0 },
  );
  expect(changes).toMatchObject([{ sequence: 1 }]);
  return cursor;
}

test('a stream that is left while it begins is forgotten, also when the database fails it then', async () => {
  const before = plane.services.kept();
  const stream = await open({ attemptId: (await one()).attemptId });
  const locker = new pg.Client({ connectionString: plane.database.url });
  await locker.connect();
  await locker.query('begin');
  await locker.query('lock table runplane.leases in access exclusive mode');
  const failed = expect(stream.next()).rejects.toThrow('canceling statement');
  await stream.return?.();
  await plane.untilBlocked(1);
  await plane.rows(
    `select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  await failed;
  await locker.end();
  expect(plane.services.kept()).toEqual(before);
});
