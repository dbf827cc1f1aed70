import { afterEach, beforeEach, expect, test } from 'vitest';
import { ControlPlane } from '../support/control-plane.ts';
import { Client } from './client.ts';

let plane: ControlPlane;
let client: Client;
beforeEach(async () => {
  plane = await ControlPlane.start();
  client = new Client(plane);
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

const taskPage = `query($filter: TaskFilter, $after: Cursor, $first: Int, $waitSeconds: Float) {
  taskStatusChanges(filter: $filter, after: $after, first: $first, waitSeconds: $waitSeconds) {
    cursor caughtUp changes { id sequence runId job step fromStatus toStatus task { status } } } }`;
const runPage = `query($filter: RunFilter, $after: Cursor) {
  runStatusChanges(filter: $filter, after: $after) { cursor caughtUp changes { runId fromStatus toStatus run { status } } } }`;

test('a client that cannot stream follows a run by pages from the cursor of its launch', async () => {
  const { launchRun } = await client.query(
    'mutation { launchRun(input: { job: "one" }) { ... on LaunchRunSuccess { runId cursor } } }',
  );
  const [task] = await plane.claim(['a'], 1);
  if (!task) throw new Error('nothing to claim');
  const filter = { runIds: [launchRun.runId] };
  const { taskStatusChanges: begun } = await client.query(taskPage, { filter, after: launchRun.cursor });
  expect(begun.changes).toMatchObject([
    { sequence: 1, fromStatus: null, toStatus: 'ENQUEUED', job: 'one', step: 'a' },
    { sequence: 2, fromStatus: 'ENQUEUED', toStatus: 'PROCESSING', task: { status: 'PROCESSING' } },
  ]);
  expect(begun.caughtUp).toBe(true);
  const waiting = client.query(taskPage, { filter, after: begun.cursor, waitSeconds: 25 });
  await plane.report(task, { status: 'COMPLETED' });
  expect((await waiting).taskStatusChanges.changes).toMatchObject([
    { sequence: 3, fromStatus: 'PROCESSING', toStatus: 'COMPLETED' },
  ]);
  const { runStatusChanges } = await client.query(runPage, {
    filter: { ids: [launchRun.runId], statuses: ['COMPLETED'] },
    after: launchRun.cursor,
  });
  expect(runStatusChanges.changes).toEqual([
    { runId: launchRun.runId, fromStatus: 'RUNNING', toStatus: 'COMPLETED', run: { status: 'COMPLETED' } },
  ]);
});

test('a page has 50 changes where nobody says how many', async () => {
  await plane.services.intake.launchRuns(Array.from({ length: 60 }, () => ({ job: 'one' })));
  const { taskStatusChanges: page } = await client.query(taskPage);
  expect(page).toMatchObject({ caughtUp: false });
  expect(page.changes).toHaveLength(50);
  const { taskStatusChanges: rest } = await client.query(taskPage, { after: page.cursor });
  expect(rest.changes).toHaveLength(10);
});

test.each([
  [{ first: 201 }, { code: 'PAGE_TOO_LARGE', field: 'first', limit: 200, actual: 201 }],
  [{ first: 0 }, { code: 'BAD_USER_INPUT', field: 'first' }],
  [{ waitSeconds: 25.1 }, { code: 'BAD_USER_INPUT', field: 'waitSeconds' }],
  [{ waitSeconds: -1 }, { code: 'BAD_USER_INPUT', field: 'waitSeconds' }],
  [{ after: 'abc' }, { code: 'INVALID_CURSOR' }],
  [{ filter: { errorCodes: ['E'] } }, { code: 'BAD_USER_INPUT', field: 'filter.errorCodes' }],
  [{ filter: { waitingReasons: ['BUDGET'] } }, { code: 'BAD_USER_INPUT', field: 'filter.waitingReasons' }],
  [
    { filter: { not: { waitingReasons: ['BUDGET'] } } },
    { code: 'BAD_USER_INPUT', field: 'filter.not.waitingReasons' },
  ],
  [
    { filter: { not: { finishedAfter: '2026-01-01T00:00:00Z' } } },
    { code: 'BAD_USER_INPUT', field: 'filter.not.finishedAfter' },
  ],
])('a page with %j is refused', async (variables, extensions) => {
  expect(await client.refusal(taskPage, variables)).toMatchObject(extensions);
});

test('an expired cursor says where to go on, and pages need READ', async () => {
  const { changeLogCursor } = await client.query('{ changeLogCursor }');
  const [, epoch = ''] = Buffer.from(changeLogCursor, 'base64url').toString().split('.');
  const ahead = Buffer.from(`c1.${epoch}.999999999.0`).toString('base64url');
  expect(await client.refusal(runPage, { after: ahead })).toMatchObject({
    code: 'CURSOR_EXPIRED',
    cursor: expect.any(String),
  });
  const worker = new Client(plane, ['WORK']);
  expect(await worker.refusal(runPage)).toEqual({ code: 'FORBIDDEN', scope: 'READ' });
  expect(await worker.refusal(taskPage)).toEqual({ code: 'FORBIDDEN', scope: 'READ' });
});
