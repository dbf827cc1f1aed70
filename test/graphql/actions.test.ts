import { afterAll, beforeAll, expect, test } from 'vitest';
import { ControlPlane } from '../support/control-plane.ts';
import { Client } from './client.ts';

let plane: ControlPlane;
let client: Client;
beforeAll(async () => {
  plane = await ControlPlane.start();
  client = new Client(plane);
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterAll(() => plane.stop());

const launch = async (more = ''): Promise<{ run: string; task: string }> => {
  const { launchRun } = await client.query(
    `mutation { launchRun(input: { job: "one" ${more} }) { ... on LaunchRunSuccess { runId run { taskOfStep(step: "a") { id } } } } }`,
  );
  return { run: launchRun.runId, task: launchRun.run.taskOfStep.id };
};
const onTask = async (field: string, id: string, more = '') =>
  (
    await client.query(
      `mutation($id: ID!) { ${field}(taskId: $id ${more}) { __typename ... on TaskActionSuccess { taskId taskStatus task { priority } } ... on Problem { message } ... on IllegalState { status } } }`,
      { id },
    )
  )[field];
const allowed = async (id: string, as = client) => {
  const { node } = await as.query(
    'query($id: ID!) { node(id: $id) { ... on Task { task: allowedActions } ... on Run { run: allowedActions } } }',
    { id },
  );
  return node.task ?? node.run;
};
const end = async (status: 'COMPLETED' | 'FAILED') => {
  for (const task of await plane.claim(['a']))
    await plane.report(task, {
      status,
      error: status === 'FAILED' ? { code: 'NO', kind: 'PERMANENT' } : null,
    });
};

test('a scheduled task is reordered and run now; what is allowed is told at every step', async () => {
  const { run, task } = await launch('availableAt: "2999-01-01T00:00:00.000Z"');
  expect(await allowed(task)).toEqual(['CANCEL', 'RUN_NOW', 'SET_PRIORITY']);
  expect(await allowed(run)).toEqual(['CANCEL']);
  expect(await onTask('setTaskPriority', task, 'priority: 7')).toEqual({
    __typename: 'TaskActionSuccess',
    taskId: task,
    taskStatus: 'ENQUEUED',
    task: { priority: 7 },
  });
  expect(await onTask('runTaskNow', task)).toMatchObject({ task: { priority: 107 } });
  expect(await allowed(task)).toEqual(['CANCEL', 'SET_PRIORITY']);
  expect(await onTask('runTaskNow', task)).toMatchObject({ __typename: 'IllegalState', status: 'ENQUEUED' });
  expect(await onTask('deleteTask', task)).toMatchObject({ __typename: 'IllegalState', status: 'ENQUEUED' });
  expect(await onTask('setTaskPriority', task, 'priority: 1001')).toMatchObject({
    __typename: 'InvalidInput',
  });
  await end('COMPLETED');
  expect(await allowed(task)).toEqual(['DELETE']);
  expect(await allowed(run)).toEqual(['RERUN']);
  expect(await onTask('deleteTask', task, 'reason: "gone"')).toEqual({
    __typename: 'TaskActionSuccess',
    taskId: task,
    taskStatus: 'COMPLETED',
    task: null,
  });
  expect(await onTask('deleteTask', task)).toMatchObject({ __typename: 'NotFound' });
});

test('a run is rerun, and its key is its own', async () => {
  const { run, task } = await launch();
  await end('FAILED');
  expect(await allowed(task)).toEqual(['RETRY', 'DELETE']);
  const rerun = async (more = '', as = client) =>
    (
      await as.query(
        `mutation($id: ID!) { rerun(input: { runId: $id ${more} }) { __typename
          ... on LaunchRunSuccess { replayed runId cursor run { parentRun { id } priority tasks { nodes { takenOverFrom { id } } } } }
          ... on IdempotencyConflict { existingId } ... on Problem { message } } }`,
        { id: run },
      )
    ).rerun;
  const first = await rerun('idempotencyKey: "k"');
  expect(first).toMatchObject({
    __typename: 'LaunchRunSuccess',
    replayed: false,
    run: { parentRun: { id: run }, priority: 100, tasks: { nodes: [{ takenOverFrom: null }] } },
  });
  expect(await rerun('idempotencyKey: "k", onlyFailed: true')).toMatchObject({
    replayed: true,
    runId: first.runId,
  });
  expect(await rerun('idempotencyKey: "k", priority: 1')).toMatchObject({
    __typename: 'IdempotencyConflict',
    existingId: first.runId,
  });
  expect(await rerun('', new Client(plane, ['READ', 'OPERATE']))).toMatchObject({ __typename: 'Forbidden' });
  await end('COMPLETED');
});

test('dead letters are purged with a reason', async () => {
  await launch();
  await end('FAILED');
  const purge = async (args: string) =>
    (
      await client.query(
        `mutation { purgeDeadLetters(${args}) { __typename ... on BulkSuccess { matched changed hasMore } ... on InvalidInput { field } } }`,
      )
    ).purgeDeadLetters;
  expect(await purge('filter: {}, reason: "r"')).toEqual({ __typename: 'InvalidInput', field: 'filter' });
  expect(await purge('filter: { jobs: ["one"], replayed: false }, reason: "r"')).toMatchObject({
    __typename: 'BulkSuccess',
    hasMore: false,
  });
  expect((await client.query('{ deadLetters { nodes { id } } }')).deadLetters.nodes).toEqual([]);
  expect(
    await client.refusal(
      'mutation { purgeDeadLetters(filter: { ids: ["task_x"] }, reason: "r") { __typename } }',
    ),
  ).toMatchObject({
    code: 'BAD_USER_INPUT',
  });
});

test('ids of another kind are not found, and nobody acts without the scope', async () => {
  const { run, task } = await launch();
  for (const [field, more] of [['runTaskNow'], ['deleteTask'], ['setTaskPriority', 'priority: 1']] as const) {
    expect(await onTask(field, run, more)).toMatchObject({ __typename: 'NotFound' });
  }
  const rerun = 'mutation($id: ID!) { rerun(input: { runId: $id }) { __typename } }';
  expect(await client.query(rerun, { id: task })).toEqual({ rerun: { __typename: 'NotFound' } });
  const reader = new Client(plane, ['READ', 'LAUNCH']);
  expect(await allowed(task, reader)).toEqual([]);
  for (const call of [
    'runTaskNow(taskId: $id)',
    'deleteTask(taskId: $id)',
    'setTaskPriority(taskId: $id, priority: 1)',
    'purgeDeadLetters(filter: { jobs: ["one"] }, reason: "r")',
  ]) {
    const mutation = `mutation($id: ID!) { ping: ${call} { __typename } }`.replace(
      '($id: ID!)',
      call.includes('$id') ? '($id: ID!)' : '',
    );
    expect(await reader.query(mutation, { id: task })).toEqual({ ping: { __typename: 'Forbidden' } });
  }
});

test('an event is replayed by those who may operate', async () => {
  const publish = `mutation { publishEvent(input: { topic: "replayed.new", payload: { n: 1 } }) {
    ... on PublishEventSuccess { eventId runIds } } }`;
  const { eventId, runIds } = (await client.query(publish)).publishEvent;
  expect(runIds).toEqual([]);
  await client.query(
    'mutation { saveRoute(input: { name: "replayed", topic: "replayed.*", job: "one" }) { __typename } }',
  );
  const replay = async (id: string, as = client) =>
    (
      await as.query(
        `mutation($id: ID!) { replayEvent(id: $id) { __typename ... on Problem { message }
          ... on PublishEventSuccess { eventId runIds replayed cursor refusals { route } event { id } runs { event { id } } } } }`,
        { id },
      )
    ).replayEvent;
  const first = await replay(eventId);
  expect(first).toMatchObject({
    __typename: 'PublishEventSuccess',
    eventId,
    runIds: [expect.stringMatching(/^run_/)],
    replayed: false,
    refusals: [],
    event: { id: eventId },
    runs: [{ event: { id: eventId } }],
  });
  expect(await replay(eventId)).toMatchObject({ runIds: first.runIds, replayed: true });
  expect(await replay('evt_x')).toEqual({ __typename: 'NotFound', message: 'There is no event "evt_x".' });
  expect(await replay(eventId, new Client(plane, ['READ', 'PUBLISH', 'CONFIGURE']))).toMatchObject({
    __typename: 'Forbidden',
  });
  await end('COMPLETED');
});
