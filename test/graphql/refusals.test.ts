import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newUuid, toPublicId } from '../../src/domain/ids.ts';
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

const launch =
  'mutation($input: LaunchRunInput!) { launchRun(input: $input) { __typename ... on Problem { message } ... on LaunchRunSuccess { runId replayed run { id } } ... on IdempotencyConflict { existingId } ... on Forbidden { scope } } }';

describe('without a scope', () => {
  test('questions are an error that names it', async () => {
    const reader = new Client(plane, ['LAUNCH']);
    const forbidden = { code: 'FORBIDDEN', scope: 'READ' };
    const id = toPublicId('run', newUuid());
    for (const question of [
      `run(id: "${id}") { id }`,
      `node(id: "${id}") { id }`,
      'tasks { nodes { id } }',
      'jobs { nodes { id } }',
      'auditLog { nodes { id } }',
      'changeLogCursor',
      'pools { id }',
    ]) {
      expect(await reader.refusal(`{ ${question} }`)).toEqual(forbidden);
    }
    expect(await reader.query('{ viewer { name scopes } server { version contract maxPage } }')).toEqual({
      viewer: { name: 'tester', scopes: ['LAUNCH'] },
      server: { version: '1.2.3', contract: 1, maxPage: 200 },
    });
  });

  test('commands are refused with a value; what committed is answered without READ', async () => {
    const reader = new Client(plane, ['READ']);
    expect(await reader.query(launch, { input: { job: 'one' } })).toMatchObject({
      launchRun: { __typename: 'Forbidden', scope: 'LAUNCH' },
    });
    expect(
      await reader.query(
        'mutation { pauseAgent(name: "a") { ... on Forbidden { scope } } deleteRoute(name: "x") { ... on Forbidden { scope } } claimTasks(input: { workerId: "w", limit: 1, agents: ["a"] }) { ... on Forbidden { scope } } }',
      ),
    ).toEqual({
      pauseAgent: { scope: 'OPERATE' },
      deleteRoute: { scope: 'CONFIGURE' },
      claimTasks: { scope: 'WORK' },
    });
    const { launchRun } = await new Client(plane, ['LAUNCH']).query(launch, { input: { job: 'one' } });
    expect(launchRun).toMatchObject({ __typename: 'LaunchRunSuccess', replayed: false, run: null });
    expect(launchRun.runId).toMatch(/^run_[0-9a-z]{26}$/);
  });

  test('payloads are null', async () => {
    await plane.launch('one', { config: { secret: 1 }, idempotencyKey: 'secret' });
    const question =
      '{ runs(filter: { idempotencyKeys: ["secret"] }) { nodes { config tasks { nodes { input } } } } }';
    const payload = (value: object | null) => ({
      runs: { nodes: [{ config: value, tasks: { nodes: [{ input: value }] } }] },
    });
    expect(await new Client(plane, ['READ']).query(question)).toEqual(payload(null));
    expect(await client.query(question)).toEqual(payload({ secret: 1 }));
  });
});

describe('problems', () => {
  test('carry public ids', async () => {
    const first = await client.query(launch, {
      input: { job: 'one', idempotencyKey: 'k', config: { a: 1 } },
    });
    const other = await client.query(launch, {
      input: { job: 'one', idempotencyKey: 'k', config: { a: 2 } },
    });
    expect(other.launchRun).toMatchObject({
      __typename: 'IdempotencyConflict',
      existingId: first.launchRun.runId,
    });
    const publish = (n: number) =>
      client.query(
        `mutation { publishEvent(input: { topic: "t", payload: ${n}, idempotencyKey: "k" }) { ... on PublishEventSuccess { eventId } ... on IdempotencyConflict { existingId } } }`,
      );
    const { publishEvent } = await publish(1);
    expect((await publish(2)).publishEvent).toEqual({ existingId: publishEvent.eventId });
  });

  test('quote only the beginning of a name that none could have', async () => {
    const name = `${'x'.repeat(200)}${'y'.repeat(70_000)}`;
    const { deleteRoute } = await client.query(
      'mutation($name: String!) { deleteRoute(name: $name) { ... on NotFound { message } } }',
      { name },
    );
    expect(deleteRoute.message).toBe(`There is no route "${'x'.repeat(200)}…".`);
  });

  test('of a batch stand at their entries', async () => {
    const document = 'mutation($inputs: [LaunchRunInput!]!) { launchRuns(inputs: $inputs) { __typename } }';
    const { launchRuns } = await client.query(document, {
      inputs: [{ job: 'one' }, { job: 'none' }, { job: 'one', priority: 5000 }],
    });
    expect(launchRuns.map((entry: { __typename: string }) => entry.__typename)).toEqual([
      'LaunchRunSuccess',
      'JobNotFound',
      'InvalidInput',
    ]);
  });
});

describe('arguments', () => {
  test.each([
    [
      'tasks(first: 201) { nodes { id } }',
      { code: 'PAGE_TOO_LARGE', field: 'first', limit: 200, actual: 201 },
    ],
    ['runs(first: 0) { nodes { id } }', { code: 'BAD_USER_INPUT', field: 'first' }],
    ['jobs(after: "abc") { nodes { id } }', { code: 'INVALID_CURSOR', field: 'after' }],
    ['jobs(after: "a b") { nodes { id } }', { code: 'INVALID_CURSOR' }],
    ['tasks(orderBy: COST_DESC) { nodes { id } }', { code: 'BAD_USER_INPUT', field: 'orderBy' }],
    [
      'tasks(filter: { ids: ["run_01h00000000000000000000000"] }) { nodes { id } }',
      { code: 'BAD_USER_INPUT', field: 'filter.ids[0]' },
    ],
    [
      'tasks(filter: { not: { runIds: ["x"] } }) { nodes { id } }',
      { code: 'BAD_USER_INPUT', field: 'filter.not.runIds[0]' },
    ],
    [
      'tasks(filter: { not: { not: {} } }) { nodes { id } }',
      { code: 'BAD_USER_INPUT', field: 'filter.not.not' },
    ],
    ['runs(filter: { createdAfter: "2026-02-30T00:00:00Z" }) { nodes { id } }', { code: 'BAD_USER_INPUT' }],
    ['runs(filter: { createdAfter: "2026-02-01" }) { nodes { id } }', { code: 'BAD_USER_INPUT' }],
  ])('%s is refused', async (question, extensions) => {
    expect(await client.refusal(`{ ${question} }`)).toMatchObject(extensions);
  });

  test('times are read in any offset and given in UTC with milliseconds', async () => {
    const { launchRun } = await client.query(
      'mutation { launchRun(input: { job: "one", availableAt: "2100-01-01T02:00:00.1234+02:00" }) { ... on LaunchRunSuccess { run { availableAt } } } }',
    );
    expect(launchRun.run.availableAt).toBe('2100-01-01T00:00:00.123Z');
  });

  test.each(['1.5', '{ cost: 1.5 }', '"1e3"', '".5"', '"NaN"', '"0.1234567890123"'])(
    'a Decimal is never %s',
    async (cost) => {
      const document = `mutation { saveAgent(input: { name: "d", dispatch: { pull: {} }, computeCostPerHour: ${cost} }) { __typename } }`;
      expect((await client.execute(document)).errors).toHaveLength(1);
    },
  );
});
