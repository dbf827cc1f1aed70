import type { ExecutionResult } from 'graphql';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { toPublicId } from '../../src/domain/ids.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { type Answer, Client } from './client.ts';

let plane: ControlPlane;
let client: Client;
beforeEach(async () => {
  plane = await ControlPlane.start();
  client = new Client(plane);
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

type Stream = AsyncGenerator<ExecutionResult<Answer>, void, void>;
const taskChanges = `subscription($filter: TaskFilter, $after: Cursor) { taskStatusChanged(filter: $filter, after: $after) {
  cursor caughtUp changes { id sequence taskId runId job step agent attemptId attemptNumber fromStatus toStatus errorCode task { status } } } }`;

async function open(variables: object, lastEventId: string | null = null): Promise<Stream> {
  const stream = await client.subscribe(taskChanges, { ...variables }, lastEventId);
  if (!(Symbol.asyncIterator in stream)) throw new Error(JSON.stringify(stream.errors));
  return stream as Stream;
}
const next = async (stream: Stream) => (await stream.next()).value?.data?.taskStatusChanged;

test('a stream has every change of a run after the cursor of its launch, and completes with it', async () => {
  const { launchRun } = await client.query(
    'mutation { launchRun(input: { job: "one" }) { ... on LaunchRunSuccess { runId cursor } } }',
  );
  const stream = await open({ filter: { runIds: [launchRun.runId] }, after: launchRun.cursor });
  const [created] = (await next(stream)).changes;
  expect(created).toMatchObject({
    sequence: 1,
    runId: launchRun.runId,
    job: 'one',
    step: 'a',
    agent: 'a',
    fromStatus: null,
    toStatus: 'ENQUEUED',
    attemptId: null,
  });
  expect(created.id).toMatch(/^chg_/);
  const [task] = await plane.claim(['a'], 1);
  if (!task) throw new Error('nothing to claim');
  await plane.report(task, { status: 'COMPLETED' });
  const seen: Answer[] = [];
  for await (const { data } of stream) seen.push(...(data?.taskStatusChanged.changes ?? []));
  const attempt = {
    attemptId: toPublicId('att', task.attemptId),
    attemptNumber: 1,
    task: { status: 'COMPLETED' },
  };
  expect(seen).toMatchObject([
    { fromStatus: 'ENQUEUED', toStatus: 'PROCESSING', attemptId: attempt.attemptId, attemptNumber: 1 },
    { fromStatus: 'PROCESSING', toStatus: 'COMPLETED', ...attempt },
  ]);
});

test('a stream that waits ends at once when its client leaves', async () => {
  const stream = await open({});
  await next(stream);
  const waiting = stream.next();
  await stream.return();
  expect(await waiting).toMatchObject({ done: true });
});

test('Last-Event-ID wins over after', async () => {
  const runId = await plane.launch('one');
  await plane.untilLogIsPast();
  const later: string = (await client.query('{ changeLogCursor }')).changeLogCursor;
  const { launchRun } = await client.query(
    'mutation { launchRun(input: { job: "one" }) { ... on LaunchRunSuccess { runId } } }',
  );
  const stream = await open({ after: undefined }, later);
  expect((await next(stream)).changes.map((change: { runId: string }) => change.runId)).toEqual([
    launchRun.runId,
  ]);
  expect(launchRun.runId).not.toBe(toPublicId('run', runId));
  await stream.return();
});

test.each([
  [{ filter: { errorCodes: ['E'] } }, { code: 'BAD_USER_INPUT', field: 'filter.errorCodes' }],
  [{ filter: { waitingReasons: ['BUDGET'] } }, { code: 'BAD_USER_INPUT', field: 'filter.waitingReasons' }],
  [
    { filter: { not: { waitingReasons: ['BUDGET'] } } },
    { code: 'BAD_USER_INPUT', field: 'filter.not.waitingReasons' },
  ],
  [
    { filter: { finishedAfter: '2026-01-01T00:00:00Z' } },
    { code: 'BAD_USER_INPUT', field: 'filter.finishedAfter' },
  ],
  [
    { filter: { not: { finishedBefore: '2026-01-01T00:00:00Z' } } },
    { code: 'BAD_USER_INPUT', field: 'filter.not.finishedBefore' },
  ],
  [
    { filter: { ids: ['run_01h00000000000000000000000'] } },
    { code: 'BAD_USER_INPUT', field: 'filter.ids[0]' },
  ],
  [{ after: 'abc' }, { code: 'INVALID_CURSOR' }],
])('a stream of %j is refused', async (variables, extensions) => {
  const answer = await client.subscribe(taskChanges, variables);
  expect((answer as ExecutionResult).errors?.[0]?.extensions).toMatchObject(extensions);
});

test.each([
  ['ahead of the database', (epoch: string) => `c1.${epoch}.999999999.0`],
  ['of another database', () => 'c1.00000000.1.0'],
])('a cursor %s ends the stream with an error that says where to restart', async (_, text) => {
  const cursor: string = (await client.query('{ changeLogCursor }')).changeLogCursor;
  const [, epoch = ''] = Buffer.from(cursor, 'base64url').toString().split('.');
  const stream = await open({ after: Buffer.from(text(epoch)).toString('base64url') });
  await expect(stream.next()).rejects.toMatchObject({
    extensions: { code: 'CURSOR_EXPIRED', cursor: expect.any(String) },
  });
  expect(await stream.next()).toMatchObject({ done: true });
});

test('changes of runs are filtered by the status that they lead to', async () => {
  const document =
    'subscription($after: Cursor) { runStatusChanged(filter: { statuses: [RUNNING] }, after: $after) { changes { fromStatus toStatus run { status } } } }';
  const { changeLogCursor } = await client.query('{ changeLogCursor }');
  await plane.launch('one');
  await plane.claim(['a'], 1);
  const stream = (await client.subscribe(document, { after: changeLogCursor })) as Stream;
  const { value } = await stream.next();
  expect(value?.data).toEqual({
    runStatusChanged: {
      changes: [{ fromStatus: 'QUEUED', toStatus: 'RUNNING', run: { status: 'RUNNING' } }],
    },
  });
  await stream.return();
  const refused = (await client.subscribe(
    'subscription { runStatusChanged(filter: { finishedAfter: "2026-01-01T00:00:00Z" }) { cursor } }',
  )) as ExecutionResult;
  expect(refused.errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', field: 'filter.finishedAfter' });
});
