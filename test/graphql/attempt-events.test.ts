import type { ExecutionResult } from 'graphql';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import { toPublicId } from '../../src/domain/ids.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { type Answer, Client } from './client.ts';

let plane: ControlPlane;
let client: Client;
let attempt: Assignment;
beforeEach(async () => {
  plane = await ControlPlane.start();
  client = new Client(plane);
  await plane.agent('a');
  await plane.job('one', ['a']);
  await plane.launch('one');
  [attempt] = (await plane.claim(['a'], 1)) as [Assignment];
});
afterEach(() => plane.stop());

const append = `mutation($lease: LeaseRef!, $events: [AttemptEventInput!]!, $firstSequence: Int) {
  appendAttemptEvents(lease: $lease, events: $events, firstSequence: $firstSequence) {
    __typename ... on AppendAttemptEventsSuccess { lastSequence } ... on InvalidInput { field } } }`;
const list = `query($id: ID!, $first: Int, $after: Cursor) { attempt(id: $id) { events(first: $first, after: $after) {
  nodes { id sequence attemptId taskId type at data attempt { number } } pageInfo { hasNextPage endCursor } } } }`;
const watch = `subscription($of: AttemptEventsOf!, $after: Cursor) { attemptEvents(of: $of, after: $after) {
  cursor caughtUp events { id sequence type data } } }`;
type Stream = AsyncGenerator<ExecutionResult<Answer>, void, void>;

test('a worker tells with its lease alone, and repeats without doubling', async () => {
  const worker = new Client(plane, []);
  const lease = plane.credentials(attempt);
  const events = [{ type: 'thought', data: { content: 'Hm.' } }, { type: 'stop' }];
  for (const firstSequence of [1, 1]) {
    expect(await worker.query(append, { lease, events, firstSequence })).toEqual({
      appendAttemptEvents: { __typename: 'AppendAttemptEventsSuccess', lastSequence: 2 },
    });
  }
  expect(await worker.query(append, { lease, events, firstSequence: 9 })).toEqual({
    appendAttemptEvents: { __typename: 'InvalidInput', field: 'firstSequence' },
  });
  expect(await worker.query(append, { lease: { ...lease, leaseToken: 'guess' }, events })).toEqual({
    appendAttemptEvents: { __typename: 'LeaseTokenInvalid' },
  });
});

test('the events of an attempt are a list, by sequence', async () => {
  await plane.tell(
    attempt,
    [1, 2, 3].map((data) => ({ type: 'log', data })),
  );
  const { attemptId: id } = plane.credentials(attempt);
  const { events } = (await client.query(list, { id, first: 2 })).attempt;
  expect(events.nodes).toMatchObject([
    { sequence: 1, attemptId: id, taskId: toPublicId('task', attempt.taskId), type: 'log', data: 1 },
    { sequence: 2, data: 2, attempt: { number: 1 } },
  ]);
  expect(events.nodes[0].id).toMatch(/^aev_/);
  expect(events.pageInfo.hasNextPage).toBe(true);
  const rest = await client.query(list, { id, after: events.pageInfo.endCursor });
  expect(rest.attempt.events.nodes).toMatchObject([{ sequence: 3 }]);
});

test('a stream tells what agents do, from the cursor of the launch to the end of the run', async () => {
  const { launchRun } = await client.query(
    'mutation { launchRun(input: { job: "one" }) { ... on LaunchRunSuccess { runId cursor } } }',
  );
  const [task] = await plane.claim(['a'], 1);
  if (!task) throw new Error('nothing to claim');
  await plane.tell(task, [
    { type: 'tool_call', data: { id: 'c1', name: 'search', arguments: {}, hint: null } },
  ]);
  const stream = (await client.subscribe(watch, {
    of: { runId: launchRun.runId },
    after: launchRun.cursor,
  })) as Stream;
  const seen: Answer[] = [];
  const reading = (async () => {
    for await (const { data } of stream) seen.push(...(data?.attemptEvents.events ?? []));
  })();
  await plane.tell(task, [{ type: 'final_answer', data: { content: '42', done: true, is_fallback: false } }]);
  await plane.report(task, { status: 'COMPLETED' });
  await reading;
  expect(seen).toMatchObject([
    { sequence: 1, type: 'tool_call', data: { name: 'search' } },
    { sequence: 2, type: 'final_answer', data: { content: '42', done: true } },
  ]);
});

test('Last-Event-ID wins over after', async () => {
  const { changeLogCursor: after } = await client.query('{ changeLogCursor }');
  await plane.tell(attempt, [{ type: 'log', data: 1 }]);
  const of = { attemptId: plane.credentials(attempt).attemptId };
  const first = (await client.subscribe(watch, { of, after })) as Stream;
  const { cursor, events } = (await first.next()).value?.data?.attemptEvents ?? {};
  expect(events).toMatchObject([{ data: 1 }]);
  await first.return();
  await plane.tell(attempt, [{ type: 'log', data: 2 }]);
  const resumed = (await client.subscribe(watch, { of, after: 'nonsense' }, cursor)) as Stream;
  expect((await resumed.next()).value?.data?.attemptEvents.events.at(-1)).toMatchObject({ data: 2 });
  await resumed.return();
});

test('data is a payload: null without PAYLOAD_READ, in lists and streams; both need READ', async () => {
  await plane.tell(attempt, [{ type: 'log', data: 'secret' }]);
  const reader = new Client(plane, ['READ']);
  const { attemptId: id } = plane.credentials(attempt);
  const { nodes } = (await reader.query(list, { id })).attempt.events;
  expect(nodes).toMatchObject([{ type: 'log', data: null }]);
  const stream = (await reader.subscribe(watch, { of: { attemptId: id } })) as Stream;
  await stream.next();
  await plane.tell(attempt, [{ type: 'log', data: 'secret' }]);
  expect((await stream.next()).value?.data?.attemptEvents.events).toMatchObject([
    { sequence: 2, data: null },
  ]);
  await stream.return();
  const worker = new Client(plane, ['WORK']);
  const refused = (await worker.subscribe(watch, { of: { attemptId: id } })) as ExecutionResult;
  expect(refused.errors?.[0]?.extensions).toEqual({ code: 'FORBIDDEN', scope: 'READ' });
});

test.each([
  [{ of: { runId: 'task_1' } }, { code: 'BAD_USER_INPUT', field: 'of.runId' }],
  [{ of: { attemptId: '' } }, { code: 'BAD_USER_INPUT', field: 'of.attemptId' }],
  [{ of: { taskId: 'task_01h455vb4pex5vsknk084sn02q' }, after: 'abc' }, { code: 'INVALID_CURSOR' }],
])('a stream of %j is refused', async (variables, extensions) => {
  const answer = (await client.subscribe(watch, variables)) as ExecutionResult;
  expect(answer.errors?.[0]?.extensions).toMatchObject(extensions);
});

test('a stream is of exactly one thing', async () => {
  for (const of of [{}, { runId: 'run_x', taskId: 'task_x' }]) {
    const answer = (await client.subscribe(watch, { of })) as ExecutionResult;
    expect(answer.errors).toHaveLength(1);
  }
});
