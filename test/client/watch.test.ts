import { afterEach, beforeEach, expect, test } from 'vitest';
import { deleteOldChanges } from '../../src/changelog/delete-old-changes.sql.ts';
import {
  type TaskStatusChange,
  WatchError,
  watchRunChanges,
  watchTaskChanges,
} from '../../src/client/index.ts';
import { toPublicId } from '../../src/domain/ids.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { startWatching } from '../support/watching.ts';

let server: TestServer;
beforeEach(async () => {
  server = await startTestServer();
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
});
afterEach(() => server.stop());

const now = () => server.plane.services.changeLog.currentCursor();
const launch = async () => toPublicId('run', await server.plane.launch('one'));
const complete = async (): Promise<void> => {
  for (const task of await server.plane.claim(['a']))
    await server.plane.report(task, { status: 'COMPLETED' });
};

test('changes come typed, in order and with the cursor to go on after', async () => {
  const { url } = server;
  const after = await now();
  const runId = await launch();
  await complete();
  await server.plane.untilLogIsPast();
  const seen: TaskStatusChange[] = [];
  let cursor = '';
  for await (const batch of watchTaskChanges({
    url,
    after,
    filter: { runIds: [runId], statuses: ['COMPLETED'] },
  })) {
    seen.push(...batch.changes);
    ({ cursor } = batch);
  }
  expect(seen).toEqual([
    expect.objectContaining({
      runId,
      job: 'one',
      step: 'a',
      agent: 'a',
      fromStatus: 'PROCESSING',
      attemptNumber: 1,
    }),
  ]);
  for await (const { changes, caughtUp } of watchTaskChanges({ url, after: cursor })) {
    expect(changes).toEqual([]);
    if (caughtUp) break;
  }
});

test('without a cursor it begins with what happens now', async () => {
  await launch();
  await server.plane.untilLogIsPast();
  const watching = startWatching({ url: server.url });
  await watching.untilState('live');
  const runId = await launch();
  await watching.until(runId);
  expect(watching.changes).toHaveLength(1);
  await watching.stop();
});

test('a watch that names runs ends with them', async () => {
  const runId = await launch();
  await server.plane.untilLogIsPast();
  const watching = startWatching({ url: server.url, filter: { ids: [runId] }, after: await now() });
  await watching.untilState('live');
  await complete();
  expect(await watching.over).toBeNull();
  expect(watching.changes.map(({ toStatus }) => toStatus)).toEqual(['RUNNING', 'COMPLETED']);
  expect(watching.states).toEqual(['live']);
});

test('it is left by its signal, by break and by return, also while it waits', async () => {
  const left = new AbortController();
  const batches = watchRunChanges({ url: server.url, signal: left.signal });
  await batches.next();
  const waiting = batches.next();
  left.abort();
  expect(await waiting).toEqual({ done: true, value: undefined });
  expect(await watchRunChanges({ url: server.url, signal: left.signal }).next()).toMatchObject({
    done: true,
  });

  const other = watchRunChanges({ url: server.url });
  await other.next();
  const last = other.next();
  await other.return?.();
  expect(await last).toEqual({ done: true, value: undefined });
});

const badFilter: object = { colour: ['red'] };
const refusedFilter: object = { finishedAfter: '2026-01-01T00:00:00Z' };
test.each([
  ['a cursor that is none', { after: 'nonsense' }, 'INVALID_CURSOR'],
  ['a filter that streams refuse', { filter: refusedFilter }, 'BAD_USER_INPUT'],
  ['a filter that does not exist', { filter: badFilter }, 'BAD_USER_INPUT'],
])('%s is thrown and not tried again', async (_, more, code) => {
  const watching = startWatching({ url: server.url, ...more });
  expect(await watching.over).toMatchObject({ name: 'WatchError', code });
  expect(watching.states).toEqual([]);
});

test('a URL that cannot be one is refused at once, another server as soon as it answers', async () => {
  expect(() => watchRunChanges({ url: 'not a url' })).toThrow(TypeError);
  expect(() => watchRunChanges({ url: server.url, token: 'two\nlines' })).toThrow(TypeError);
  const watching = startWatching({ url: `${server.http.url}/healthz`, after: await now() });
  expect(await watching.over).toMatchObject({ name: 'WatchError', code: null });
});

test('a cursor past what is kept is CURSOR_EXPIRED, with the one to restart from', async () => {
  const { plane, url } = server;
  const after = await now();
  await launch();
  await complete();
  await plane.untilLogIsPast();
  await plane.rows(`update runplane.change_log set at = at - interval '2 days'`);
  expect(await deleteOldChanges(plane.database.db, 1, 100)).toBeGreaterThan(0);
  const watching = startWatching({ url, after });
  const error = await watching.over;
  if (!(error instanceof WatchError)) throw error;
  expect(error.code).toBe('CURSOR_EXPIRED');
  expect(watching.changes).toEqual([]);

  const restarted = startWatching({ url, after: error.cursor });
  const runId = await launch();
  await restarted.until(runId);
  expect(restarted.changes).toHaveLength(1);
  await restarted.stop();
});
