import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CursorError, encodeCursor } from '../../src/changelog/cursor.ts';
import type { Changes } from '../../src/changelog/types.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { writeLate } from '../support/late-writers.ts';
import { readyTasks } from '../support/many-tasks.sql.ts';
import { count } from '../support/tier.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.agent('b');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

const tasks = (filter = {}, after: string | null = null) =>
  plane.services.changeLog.taskChanges(filter, after);
const runs = (filter = {}, after: string | null = null) => plane.services.changeLog.runChanges(filter, after);

async function next<Change>(stream: AsyncIterator<Changes<Change>>): Promise<Changes<Change>> {
  const { done, value } = await stream.next();
  if (done) throw new Error('the stream is over');
  return value;
}
/** Reads until a change is there. */
async function nextChanges<Change>(stream: AsyncIterator<Changes<Change>>): Promise<Changes<Change>> {
  for (;;) {
    const message = await next(stream);
    if (message.changes.length > 0) return message;
  }
}
const complete = async () => {
  for (const task of await plane.claim(['a', 'b'])) await plane.report(task, { status: 'COMPLETED' });
};

test('a stream without a cursor starts now, its first message comes at once', async () => {
  await plane.launch('one');
  const stream = tasks();
  expect(await next(stream)).toMatchObject({ caughtUp: true, changes: [] });
  await plane.launch('one', { customer: 'new' });
  const { changes } = await nextChanges(stream);
  expect(changes).toMatchObject([
    { fromStatus: null, toStatus: 'ENQUEUED', sequence: 1, job: 'one', step: 'a', agent: 'a' },
  ]);
  await stream.return?.();
  expect(await stream.next()).toMatchObject({ done: true });
});

test('after the cursor of a launch comes everything that happened to the run, in order', async () => {
  const [launched] = await plane.services.intake.launchRuns([{ job: 'one' }]);
  if (launched?.kind !== 'LaunchRunSuccess') throw new Error('not launched');
  const [task] = await plane.claim(['a']);
  await plane.report(task as never, { status: 'FAILED', error: { code: 'AGAIN' } });
  await complete();
  const seen: [string | null, string, number][] = [];
  for await (const { changes } of tasks({ runIds: [launched.runId] }, launched.cursor)) {
    for (const change of changes) seen.push([change.fromStatus, change.toStatus, change.sequence]);
  }
  expect(seen).toEqual([
    [null, 'ENQUEUED', 1],
    ['ENQUEUED', 'PROCESSING', 2],
    ['PROCESSING', 'ENQUEUED', 3],
    ['ENQUEUED', 'PROCESSING', 4],
    ['PROCESSING', 'COMPLETED', 5],
  ]);
});

test('a stream of named runs completes when they are terminal, also when they were before', async () => {
  const run = await plane.launch('one');
  const stream = runs({ ids: [run] });
  await next(stream);
  const rest = (async () => {
    const statuses: string[] = [];
    for await (const { changes } of stream) for (const change of changes) statuses.push(change.toStatus);
    return statuses;
  })();
  await complete();
  expect(await rest).toEqual(['RUNNING', 'COMPLETED']);
  const again: string[] = [];
  for await (const { changes } of runs({ ids: [run] }))
    for (const change of changes) again.push(change.toStatus);
  expect(again).toEqual([]);
});

test('filters choose by every field, and an empty list matches nothing', async () => {
  await plane.job('two', [{ name: 's', agent: 'b' }]);
  const after = await plane.services.changeLog.currentCursor();
  const run = await plane.launch('one', {
    customer: 'acme',
    labels: [{ key: 'env', value: 'prod' }],
    correlationId: 'c1',
    idempotencyKey: 'once',
  });
  await plane.launch('two');
  const [task] = await plane.rows<{ id: string; at: Date }>(
    'select id, created_at as at from runplane.tasks where run_id = $1',
    [run],
  );
  const matched = async (filter: object) =>
    (await next(tasks(filter, after))).changes.map((change) => change.job);
  expect(await matched({})).toEqual(['one', 'two']);
  for (const filter of [
    { jobs: ['one'] },
    { agents: ['a'] },
    { steps: ['a'] },
    { runIds: [run] },
    { customers: ['acme'] },
    { labels: [{ key: 'env', values: ['dev', 'prod'] }] },
    { anyLabels: [{ key: 'no' }, { key: 'env' }] },
    { correlationId: 'c1' },
    {
      correlationId: 'c1',
      createdAfter: new Date(Date.now() - 60_000),
      createdBefore: new Date(Date.now() + 60_000),
    },
    { not: { jobs: ['two'] } },
    { queues: ['default'], customers: ['acme'], statuses: ['ENQUEUED'] },
    { ids: [task?.id] },
    { jobs: ['one'], createdAfter: task?.at },
  ]) {
    expect(await matched(filter), JSON.stringify(filter)).toEqual(['one']);
  }
  for (const filter of [
    { jobs: [] },
    { statuses: ['COMPLETED'] },
    { labels: [{ key: 'env', values: ['dev'] }] },
    { labels: [] },
    { createdAfter: new Date(Date.now() + 60_000) },
    { createdBefore: new Date(Date.now() - 60_000) },
    { anyLabels: [] },
    { queues: ['interactive'] },
    { jobs: ['one'], createdBefore: task?.at },
  ]) {
    expect(await matched(filter), JSON.stringify(filter)).toEqual([]);
  }
  const matchedRuns = async (filter: object) =>
    (await next(runs(filter, after))).changes.map((change) => change.job);
  expect(await matchedRuns({})).toEqual(['one', 'two']);
  for (const filter of [{ ids: [run] }, { idempotencyKeys: ['once'] }, { correlationId: 'c1' }])
    expect(await matchedRuns(filter), JSON.stringify(filter)).toEqual(['one']);
});

describe('cursors', () => {
  test('that are none, or of another database, or ahead of it, are refused', async () => {
    const { epoch } = plane.database.installation;
    for (const [cursor, code] of [
      ['nonsense', 'INVALID_CURSOR'],
      [encodeCursor('ffffffff-0000', { xid: 1n, id: 0 }), 'CURSOR_EXPIRED'],
      [encodeCursor(epoch, { xid: 2n ** 40n, id: 0 }), 'CURSOR_EXPIRED'],
    ] as const) {
      await expect(async () => next(tasks({}, cursor))).rejects.toMatchObject({
        constructor: CursorError,
        code,
      });
    }
  });
});

test('nothing is missed and each object stays in order, whatever order transactions commit in', async () => {
  const [launched] = await plane.services.intake.launchRuns([{ job: 'one' }]);
  if (launched?.kind !== 'LaunchRunSuccess') throw new Error('not launched');
  const perWriter = count({ test: 60, soak: 2000 });
  const writers = await writeLate(plane, launched.runId, { writers: 6, perWriter });
  const { total } = writers;

  /** Reads with random reconnects from the last cursor, until every change was seen. */
  const follow = async () => {
    const seen = new Set<number>();
    const order: number[] = [];
    let cursor: string = launched.cursor;
    let lastSequence = 0;
    while (seen.size < total) {
      for await (const message of runs({}, cursor)) {
        cursor = message.cursor;
        for (const change of message.changes) {
          if (change.reason === null || seen.has(change.number)) continue;
          seen.add(change.number);
          order.push(change.sequence);
        }
        if (seen.size === total || Math.random() < 0.2) break;
      }
    }
    for (const sequence of order) {
      expect(sequence).toBe(lastSequence === 0 ? sequence : lastSequence + 1);
      lastSequence = sequence;
    }
    return seen.size;
  };
  const sizes = await Promise.all(Array.from({ length: 8 }, follow));
  expect(sizes).toEqual(Array.from({ length: 8 }, () => total));
  await writers.cleanUp();
});

test('a reader that falls behind its buffer goes back to the log and misses nothing', async () => {
  const stream = tasks();
  await next(stream);
  const n = 600;
  const launches = Array.from({ length: n }, () => ({ job: 'one' }));
  await plane.services.intake.launchRuns(launches);
  const seen = new Set<string>();
  while (seen.size < n) for (const change of (await next(stream)).changes) seen.add(change.taskId);
  expect(seen.size).toBe(n);
  await stream.return?.();
});

test('what is asked for by its keys is found in a backlog of others that no page holds', async () => {
  const after = await plane.services.changeLog.currentCursor();
  const run = await plane.launch('one', { correlationId: 'mine' });
  await plane.job('a', ['a']);
  for (const statement of readyTasks({ agents: ['a'], count: 6_000, priority: 0 }))
    await plane.rows(statement);
  await complete();
  const [task] = await plane.rows<{ id: string }>('select id from runplane.tasks where run_id = $1', [run]);
  const toldOf = async (stream: AsyncIterator<Changes<{ toStatus: string }>>): Promise<string[]> => {
    const statuses: string[] = [];
    for (let caughtUp = false; !caughtUp; ) {
      const message = await next(stream);
      statuses.push(...message.changes.map(({ toStatus }) => toStatus));
      ({ caughtUp } = message);
    }
    await stream.return?.();
    return statuses;
  };
  const ofTask = ['ENQUEUED', 'PROCESSING', 'COMPLETED'];
  for (const filter of [{ runIds: [run] }, { ids: [task?.id ?? ''] }, { correlationId: 'mine' }])
    expect(await toldOf(tasks(filter, after)), JSON.stringify(filter)).toEqual(ofTask);
  for (const filter of [{ ids: [run] }, { correlationId: 'mine' }])
    expect(await toldOf(runs(filter, after)), JSON.stringify(filter)).toEqual([
      'QUEUED',
      'RUNNING',
      'COMPLETED',
    ]);
}, 60_000);

test('changes of one replica are seen by subscribers of another', async () => {
  const other = await ControlPlane.start({ database: plane.database });
  const stream = other.services.changeLog.taskChanges({}, null);
  await next(stream);
  const started = performance.now();
  await plane.launch('one');
  expect((await nextChanges(stream)).changes).toHaveLength(1);
  // Far below the poll of 10 s: it came by the signal.
  expect(performance.now() - started).toBeLessThan(5_000);
  await stream.return?.();
  await other.services.stop();
});
