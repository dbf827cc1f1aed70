import { isObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toPublicId } from '../../src/domain/ids.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { Client, everything, schema } from './client.ts';

let plane: ControlPlane;
let client: Client;

const claimed = async () => {
  const [assignment] = await plane.claim(['parse'], 1);
  if (!assignment) throw new Error('nothing to claim');
  return assignment;
};

beforeAll(async () => {
  plane = await ControlPlane.start();
  client = new Client(plane);
  const save = `mutation($throttle: SaveThrottleInput!, $agent: SaveAgentInput!, $job: SaveJobInput!, $route: SaveRouteInput!) {
    saveThrottle(input: $throttle) { __typename ... on SaveThrottleSuccess { name version throttle { mode } } }
    saveAgent(input: $agent) { __typename ... on SaveAgentSuccess { agent { throttles { name } computeCostPerHour } } }
    saveJob(input: $job) { __typename ... on SaveJobSuccess { job { id steps { name maxAttempts agent { name } } } } ... on Problem { message } }
    saveRoute(input: $route) { __typename ... on SaveRouteSuccess { route { job { name } } } }
  }`;
  const saved = await client.query(save, {
    throttle: { name: 'api', maxConcurrentTasks: 4 },
    agent: {
      name: 'parse',
      dispatch: { pull: {} },
      throttles: ['api'],
      computeCostPerHour: '1.20',
      retryPolicy: { maxAttempts: 5 },
    },
    job: {
      name: 'index',
      steps: [
        { name: 'parse', agent: 'parse', assetKey: 'text' },
        {
          name: 'embed',
          agent: 'parse',
          dependsOn: ['parse'],
          readsAssetKeys: ['text'],
          assetKey: 'vectors',
          maxAttempts: 2,
        },
      ],
    },
    route: { name: 'docs', topic: 'docs.*', job: 'index' },
  });
  expect(saved).toMatchObject({
    saveThrottle: {
      __typename: 'SaveThrottleSuccess',
      name: 'api',
      version: 1,
      throttle: { mode: 'CONCURRENCY' },
    },
    saveAgent: { agent: { throttles: [{ name: 'api' }], computeCostPerHour: '1.2' } },
    saveJob: {
      job: {
        steps: [
          { name: 'parse', maxAttempts: 5, agent: { name: 'parse' } },
          { name: 'embed', maxAttempts: 2 },
        ],
      },
    },
    saveRoute: { route: { job: { name: 'index' } } },
  });
  const published = await client.query(
    `mutation { publishEvent(input: { topic: "docs.new", payload: { path: "a" }, correlationId: "trace-1" }) {
      ... on PublishEventSuccess { eventId runIds runs { id event { id } } } } }`,
  );
  const { eventId, runIds, runs } = published.publishEvent;
  expect(runs).toEqual([{ id: runIds[0], event: { id: eventId } }]);

  const parse = await claimed();
  await plane.report(parse, {
    status: 'COMPLETED',
    output: { pages: 3 },
    usage: [{ model: 'm', inputTokens: 7, cost: '0.032786' }],
    materializations: [{ assetKey: 'text', metadata: { pages: 3 } }],
  });
  const embed = await claimed();
  await plane.report(embed, {
    status: 'COMPLETED',
    materializations: [{ assetKey: 'vectors', partition: 'p' }],
  });
  await plane.launch('index', { labels: [{ key: 'tenant_id', value: 't1' }] });
  await plane.report(await claimed(), {
    status: 'FAILED',
    error: { code: 'BROKEN', message: 'cannot', kind: 'PERMANENT' },
  });
  await plane.launch('index');
  await claimed();
  await client.query('mutation { createApiToken(input: { name: "reader", scopes: [READ] }) { __typename } }');
});
afterAll(() => plane.stop());

describe('what is served', () => {
  test('everything can be asked for, through everything that leads to it', async () => {
    const data = await client.query(`query ${everything('Query', 4).replace('__typename', '')}`);
    expect(data.runs.nodes).toHaveLength(3);
    expect(data.tasks.edges).toHaveLength(6);
  });

  test('node gives every kind of object by its id', async () => {
    const rows = await plane.rows<{ kind: string; id: string }>(`
      select 'run' as kind, max(id::text) as id from runplane.runs union all select 'task', max(id::text) from runplane.tasks
      union all select 'att', max(id::text) from runplane.attempts union all select 'att', max(attempt_id::text) from runplane.leases
      union all select 'evt', max(id::text) from runplane.events union all select 'job', max(id::text) from runplane.jobs
      union all select 'agent', max(id::text) from runplane.agents union all select 'thr', max(id::text) from runplane.throttles
      union all select 'queue', max(id::text) from runplane.queues union all select 'pool', max(id::text) from runplane.pools
      union all select 'route', max(id::text) from runplane.routes union all select 'wrk', max(id::text) from runplane.workers
      union all select 'dlq', max(id::text) from runplane.dead_letters union all select 'asset', max(id::text) from runplane.assets
      union all select 'mat', max(id::text) from runplane.materializations union all select 'tok', max(id::text) from runplane.api_tokens union all select 'audit', max(id::text) from runplane.audit_entries`);
    const types = new Set<string>();
    for (const { kind, id } of rows) {
      const publicId = toPublicId(kind as 'run', id);
      const { node } = await client.query('query($id: ID!) { node(id: $id) { __typename id } }', {
        id: publicId,
      });
      expect(node.id).toBe(publicId);
      types.add(node.__typename);
    }
    const nodes = Object.values(schema.getTypeMap()).filter(
      (type) => isObjectType(type) && type.getInterfaces().some(({ name }) => name === 'Node'),
    );
    expect([...types].sort()).toEqual(nodes.map(({ name }) => name).sort());
    for (const id of [
      '',
      'run_',
      'nothing',
      'run_01h00000000000000000000000',
      'tok_01h00000000000000000000000',
    ]) {
      expect(
        await client.query('query($id: ID!) { node(id: $id) { id } run(id: $id) { id } }', { id }),
      ).toEqual({ node: null, run: null });
    }
  });

  test('a finished run has its tasks, usage, cost and lineage', async () => {
    const { trace } = await client.query(`{ trace(correlationId: "trace-1") {
      events { nodes { topic payload source } } attempts { nodes { number } } materializations { nodes { asset { key } metadata } }
      runs { nodes { status config startedAt finishedAt usage { inputTokens outputTokens totalTokens } cost { llm currency unpricedAttempts }
        taskCounts { completed estimated } taskOfStep(step: "embed") { status waiting { reason } dependencies { nodes { step } }
          attempts { nodes { status counted late error { code } cost { llm } } } materializations { nodes { partition inputs { nodes { asset { key } } } } } }
        tasks { nodes { step input output usage { totalTokens } attemptCount attemptsUsed maxAttempts } } } } } }`);
    expect(trace.events.nodes).toEqual([{ topic: 'docs.new', payload: { path: 'a' }, source: 'GRAPHQL' }]);
    expect(trace.attempts.nodes).toHaveLength(2);
    expect(trace.materializations.nodes).toEqual([
      { asset: { key: 'text' }, metadata: { pages: 3 } },
      { asset: { key: 'vectors' }, metadata: null },
    ]);
    expect(trace.runs.nodes).toMatchObject([
      {
        status: 'COMPLETED',
        config: { path: 'a' },
        usage: { inputTokens: 7, outputTokens: null, totalTokens: 7 },
        cost: { llm: '0.032786', currency: 'USD', unpricedAttempts: 0 },
        taskCounts: { completed: 2, estimated: false },
        taskOfStep: {
          status: 'COMPLETED',
          waiting: null,
          dependencies: { nodes: [{ step: 'parse' }] },
          attempts: {
            nodes: [{ status: 'COMPLETED', counted: true, late: false, error: null, cost: { llm: '0' } }],
          },
          materializations: { nodes: [{ partition: 'p', inputs: { nodes: [{ asset: { key: 'text' } }] } }] },
        },
        tasks: {
          nodes: [
            {
              step: 'parse',
              input: { path: 'a' },
              output: { pages: 3 },
              usage: { totalTokens: 7 },
              attemptCount: 1,
              attemptsUsed: 1,
              maxAttempts: 5,
            },
            { step: 'embed', input: { path: 'a' }, output: null, usage: null, maxAttempts: 2 },
          ],
        },
      },
    ]);
    const { asset } =
      await client.query(`{ asset(key: "vectors") { upstream { key } downstream { key } latestMaterialization { partition }
      lineage(direction: BOTH) { upstream { key } downstream { key } depth } materializations(partition: "q") { nodes { id } } } }`);
    expect(asset).toEqual({
      upstream: [{ key: 'text' }],
      downstream: [],
      latestMaterialization: { partition: 'p' },
      lineage: [{ upstream: { key: 'text' }, downstream: { key: 'vectors' }, depth: 1 }],
      materializations: { nodes: [] },
    });
  });

  test('a failed run tells what decided it, and left a dead letter', async () => {
    const { runs, deadLetters } = await client.query(`{
      runs(filter: { statuses: [FAILED] }) { nodes { error { code kind retryable message } taskOfStep(step: "embed") { error { code } deadLetter { id } } } }
      deadLetters { nodes { scope scopeId failCount lastError { code message } task { step deadLetter { id } } } } }`);
    expect(runs.nodes).toEqual([
      {
        error: { code: 'BROKEN', kind: 'PERMANENT', retryable: false, message: 'cannot' },
        taskOfStep: { error: { code: 'DEPENDENCY_FAILED' }, deadLetter: null },
      },
    ]);
    expect(deadLetters.nodes).toMatchObject([
      {
        scope: 'tenant',
        scopeId: 't1',
        failCount: 1,
        lastError: { code: 'BROKEN', message: 'cannot' },
        task: { step: 'parse' },
      },
    ]);
  });

  test('what runs now takes capacity, and is seen at its worker', async () => {
    const { throttles, queues, workers, tasks } = await client.query(`{
      throttles { nodes { processingTasks agents { name } } }
      queues { name stats { active blocked completedLastHour failedLastHour deadLettered pending } }
      workers { nodes { busySlots agents { name } } }
      tasks(filter: { statuses: [PROCESSING] }) { nodes { startedAt attempts { nodes { status counted workerId leaseExpiresAt finishedAt } } } } }`);
    expect(throttles.nodes).toEqual([{ processingTasks: 1, agents: [{ name: 'parse' }] }]);
    expect(queues.find(({ name }: { name: string }) => name === 'default').stats).toEqual({
      active: 1,
      blocked: 1,
      completedLastHour: 2,
      failedLastHour: 2,
      deadLettered: 1,
      pending: 0,
    });
    expect(workers.nodes).toEqual([{ busySlots: 1, agents: [{ name: 'parse' }] }]);
    expect(tasks.nodes).toMatchObject([
      { attempts: { nodes: [{ status: 'RUNNING', counted: false, finishedAt: null }] } },
    ]);
  });
});
