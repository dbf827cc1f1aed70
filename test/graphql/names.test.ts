import type { ExecutionResult } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { type Answer, Client } from './client.ts';

/** A name that looks the same in both forms; only the first is how it is kept. */
const kept = 'caf\u00e9';
const asked = 'cafe\u0301';

let plane: ControlPlane;
let client: Client;
let run: string;
let beforeLaunch: string;

beforeAll(async () => {
  plane = await ControlPlane.start();
  client = new Client(plane);
  await plane.services.configuration.saveQueue({ name: kept, pool: 'core' }, actor);
  await plane.agent(asked, { queue: asked });
  await plane.job(asked, [{ name: asked, agent: asked, assetKey: asked }]);
  await plane.services.configuration.saveRoute({ name: asked, topic: asked, job: asked }, actor);
  const launched = await client.query(
    `mutation($input: LaunchRunInput!) { launchRun(input: $input) { ... on LaunchRunSuccess { runId cursor } } }`,
    {
      input: {
        job: asked,
        idempotencyKey: asked,
        correlationId: asked,
        customer: asked,
        labels: [{ key: asked, value: asked }],
      },
    },
  );
  run = launched.launchRun.runId;
  beforeLaunch = launched.launchRun.cursor;
  await plane.launch(kept);
  await plane.services.intake.publishEvents([{ topic: asked, correlationId: asked, payload: {} }]);
});
afterAll(() => plane.stop());

test('names, keys and labels are kept as NFC', async () => {
  expect(
    await plane.rows(
      `select correlation_id, idempotency_key, customer, labels from runplane.runs where idempotency_key is not null`,
    ),
  ).toEqual([{ correlation_id: kept, idempotency_key: kept, customer: kept, labels: { [kept]: kept } }]);
});

const label = { key: asked, values: [asked] };
const shared: [object, number][] = [
  [{ jobs: [asked] }, 3],
  [{ customers: [asked] }, 1],
  [{ correlationId: asked }, 2],
  [{ labels: [label] }, 1],
  [{ anyLabels: [{ key: 'other' }, label] }, 1],
  [{ customers: ['cafe'] }, 0],
];

test.each<[object, number]>([...shared, [{ idempotencyKeys: [asked] }, 1]])(
  'runs are found by the same name in another form: %j',
  async (filter, count) => {
    const { runs } = await client.query(
      'query($filter: RunFilter) { runs(filter: $filter) { nodes { id } } }',
      {
        filter,
      },
    );
    expect(runs.nodes).toHaveLength(count);
  },
);

test.each<[object, number]>([
  ...shared,
  [{ steps: [asked] }, 3],
  [{ agents: [asked] }, 3],
  [{ queues: [asked] }, 3],
  [{ not: { customers: [asked] } }, 2],
])('so are tasks: %j', async (filter, count) => {
  const { tasks, taskCounts } = await client.query(
    'query($filter: TaskFilter) { tasks(filter: $filter) { nodes { id } } taskCounts(filter: $filter) { enqueued } }',
    { filter },
  );
  expect(tasks.nodes).toHaveLength(count);
  expect(taskCounts.enqueued).toBe(count);
});

test('so are single objects, events and what belongs to them', async () => {
  const found = await client.query(
    `query($name: String!, $run: ID!) {
       agent(name: $name) { name } job(name: $name) { name } asset(key: $name) { key }
       routes(topic: $name) { nodes { name } }
       trace(correlationId: $name) { runs { nodes { id } } }
       events(filter: { topics: [$name], correlationId: $name }) { nodes { topic } }
       run(id: $run) { taskOfStep(step: $name) { step } }
       auditLog(filter: { targets: [$name] }) { nodes { target } }
     }`,
    { name: asked, run },
  );
  expect(found).toMatchObject({
    agent: { name: kept },
    job: { name: kept },
    asset: { key: kept },
    routes: { nodes: [{ name: kept }] },
    events: { nodes: [{ topic: kept }] },
    run: { taskOfStep: { step: kept } },
  });
  expect(found.trace.runs.nodes).toHaveLength(2);
  expect(found.auditLog.nodes.length).toBeGreaterThan(0);
});

test.each([
  ['taskStatusChanged', 'TaskFilter', { agents: [asked], labels: [label] }],
  ['runStatusChanged', 'RunFilter', { jobs: [asked], anyLabels: [label], idempotencyKeys: [asked] }],
])('%s sends what was launched under the name in another form', async (stream, type, filter) => {
  const watched = (await client.subscribe(
    `subscription($filter: ${type}, $after: Cursor) { ${stream}(filter: $filter, after: $after) { changes { runId } } }`,
    { filter, after: beforeLaunch },
  )) as AsyncGenerator<ExecutionResult<Answer>>;
  expect((await watched.next()).value.data[stream].changes).toEqual([{ runId: run }]);
  await watched.return(undefined);
});
