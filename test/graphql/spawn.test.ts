import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import { toPublicId } from '../../src/domain/ids.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { Client } from './client.ts';

let plane: ControlPlane;
let client: Client;
beforeAll(async () => {
  plane = await ControlPlane.start();
  client = new Client(plane);
  for (const name of ['split', 'page', 'merge']) await plane.agent(name);
  await plane.job('book', ['split', { name: 'merge', agent: 'merge', dependsOn: ['split'] }]);
});
afterAll(() => plane.stop());

const report = `mutation($input: ReportResultInput!) { reportResult(input: $input) {
  __typename ... on ReportResultSuccess { outcome taskId } ... on InvalidInput { field message } } }`;

const claimOne = async (agent: string): Promise<Assignment> => {
  const [task] = await plane.claim([agent], 1);
  if (!task) throw new Error(`nothing to claim for ${agent}`);
  return task;
};

test('a worker spawns by GraphQL, and everyone reads the tree page by page', async () => {
  const run = toPublicId('run', await plane.launch('book', { labels: [{ key: 'a', value: '1' }] }));
  const input = { ...plane.credentials(await claimOne('split')), status: 'COMPLETED' };
  const spawn = [
    { step: 'page', agent: 'page', input: { n: 1 }, labels: [{ key: 'b', value: '2' }], priority: 3 },
    { step: 'page', agent: 'page' },
    {
      step: 'page',
      agent: 'page',
      availableAt: '2999-01-01T00:00:00.000Z',
      estimatedTokens: 5,
      maxAttempts: 2,
    },
    { step: 'index', agent: 'merge', dependsOn: ['page'], when: 'DEPENDENCIES_FINISHED', optional: true },
  ];
  expect(await client.query(report, { input: { ...input, spawn: [{ step: 'page', agent: 'x' }] } })).toEqual({
    reportResult: {
      __typename: 'InvalidInput',
      field: 'spawn[0].agent',
      message: expect.stringContaining('x'),
    },
  });
  expect(await client.query(report, { input: { ...input, spawn } })).toMatchObject({
    reportResult: { outcome: 'APPLIED' },
  });

  const first = await client.query(
    `query($run: ID!) { run(id: $run) { steps { name } split: taskOfStep(step: "split") { id labels { key }
       children(first: 2) { nodes { step priority input labels { key } parent { id } } pageInfo { hasNextPage endCursor } } }
       page: taskOfStep(step: "page") { id }
       merge: taskOfStep(step: "merge") { waiting { reason detail } input dependencies { nodes { step } } } } }`,
    { run },
  );
  const split = first.run.split.id;
  expect(first.run).toEqual({
    steps: [{ name: 'split' }, { name: 'merge' }],
    split: {
      id: split,
      labels: [{ key: 'a' }],
      children: {
        nodes: [
          {
            step: 'page',
            priority: 3,
            input: { n: 1 },
            labels: [{ key: 'a' }, { key: 'b' }],
            parent: { id: split },
          },
          { step: 'page', priority: 0, input: {}, labels: [{ key: 'a' }], parent: { id: split } },
        ],
        pageInfo: { hasNextPage: true, endCursor: expect.any(String) },
      },
    },
    page: null,
    merge: {
      waiting: { reason: 'DEPENDENCY', detail: 'It waits for: split (4 not over, with what was spawned).' },
      input: {},
      dependencies: { nodes: ['split', 'page', 'page', 'page', 'index'].map((step) => ({ step })) },
    },
  });
  const rest = await client.query(
    `query($id: ID!, $after: Cursor) { task(id: $id) { children(after: $after) {
       nodes { step status estimatedTokens maxAttempts waiting { reason } dependencies { nodes { step } } children { nodes { id } } }
       pageInfo { hasNextPage } } } }`,
    { id: split, after: first.run.split.children.pageInfo.endCursor },
  );
  expect(rest.task.children).toEqual({
    nodes: [
      {
        step: 'page',
        status: 'ENQUEUED',
        estimatedTokens: 5,
        maxAttempts: 2,
        waiting: { reason: 'NOT_BEFORE' },
        dependencies: { nodes: [] },
        children: { nodes: [] },
      },
      {
        step: 'index',
        status: 'BLOCKED',
        estimatedTokens: null,
        maxAttempts: 3,
        waiting: { reason: 'DEPENDENCY' },
        dependencies: { nodes: ['page', 'page', 'page'].map((step) => ({ step })) },
        children: { nodes: [] },
      },
    ],
    pageInfo: { hasNextPage: false },
  });
});
