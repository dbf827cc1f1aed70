import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ControlPlane } from '../../support/control-plane.ts';
import { forgetAudit } from '../../support/forget-audit.ts';
import { ann, apply, auditOf, configurationOf, told } from './fixture.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await ControlPlane.start();
});
afterAll(() => plane.stop());
beforeEach(() => forgetAudit(plane.database.db));

const whole = `
routes:
  - { name: uploads, topic: docs.>, job: ingest, config: { n: { $eval: payload.n } } }
jobs:
  - name: ingest
    configSchema: { type: object }
    steps:
      - { name: parse, agent: parser, assetKey: text }
      - { name: embed, agent: embedder, dependsOn: [parse] }
agents:
  - { name: parser, dispatch: { pull: { batchBySerialKey: true } }, queue: documents, throttles: [gpu, api] }
  - { name: embedder, dispatch: { inline: { handler: embed } }, leaseSeconds: 90 }
queues:
  - { name: documents, pool: documents, weight: 2 }
pools:
  - { name: documents, slotsPerReplica: 3 }
throttles:
  - { name: api, maxTokensPerMinute: 100000 }
  - { name: gpu, maxConcurrentTasks: 2 }
`;

test('creates everything, in whatever order it stands, with one audit entry for each object', async () => {
  expect(told(await apply(plane, whole))).toEqual([
    'create throttle api',
    'create throttle gpu',
    'create pool documents',
    'create queue documents',
    'create agent parser',
    'create agent embedder',
    'create job ingest',
    'create route uploads',
  ]);
  const audit = await auditOf(plane);
  expect(audit.map(({ action, target }) => `${action} ${target}`).sort()).toEqual([
    'agent.save embedder',
    'agent.save parser',
    'job.save ingest',
    'pool.save documents',
    'queue.save documents',
    'route.save uploads',
    'throttle.save api',
    'throttle.save gpu',
  ]);
  for (const entry of audit)
    expect(entry).toMatchObject({ actor: ann.name, requestId: ann.requestId, before: null, reason: null });
});

test('changes nothing the second time, tells nobody, and writes no audit entry', async () => {
  await apply(plane, whole);
  await forgetAudit(plane.database.db);
  const before = await configurationOf(plane);
  let commits = 0;
  const again = told(await apply(plane, whole, {}, () => commits++));
  expect(new Set(again.map((line) => line.split(' ')[0]))).toEqual(new Set(['unchanged']));
  expect(commits).toBe(0);
  expect(await configurationOf(plane)).toEqual(before);
});

test('changes what differs, tells the fields, and leaves the rest alone', async () => {
  await apply(plane, whole);
  await forgetAudit(plane.database.db);
  const outcome = await apply(
    plane,
    whole.replace('leaseSeconds: 90', 'leaseSeconds: 120').replace('assetKey: text', 'assetKey: words'),
  );
  expect(told(outcome).filter((line) => !line.startsWith('unchanged'))).toEqual([
    'update agent embedder',
    'update job ingest',
  ]);
  const changes = outcome.kind === 'Applied' ? outcome.changes : [];
  expect(changes.filter(({ action }) => action === 'update')).toMatchObject([
    {
      versions: { before: 1, after: 2 },
      fields: [{ path: 'leaseSeconds', before: 90, after: 120 }],
    },
    {
      versions: { before: 1, after: 2 },
      fields: [{ path: 'steps[0].assetKey', before: 'text', after: 'words' }],
    },
  ]);
  expect((await auditOf(plane)).map(({ action, target }) => [action, target])).toEqual([
    ['agent.save', 'embedder'],
    ['job.save', 'ingest'],
  ]);
  await apply(plane, whole);
});

test('a dry run tells the same and does nothing', async () => {
  const before = await configurationOf(plane);
  const changed = `${whole}  - { name: other, maxRequestsPerSecond: 1 }`.replace('weight: 2', 'weight: 3');
  let commits = 0;
  const dry = await apply(plane, changed, { dryRun: true, prune: true }, () => commits++);
  expect(commits).toBe(0);
  expect(await configurationOf(plane)).toEqual(before);
  expect(told(dry)).toContain('create throttle other');
  expect(await apply(plane, changed, { prune: true })).toEqual(dry);
  await apply(plane, whole);
});

test('what is wrong anywhere is all reported, and nothing is done', async () => {
  const before = await configurationOf(plane);
  const outcome = await apply(
    plane,
    `
throttles: [{ name: new }, { name: new }]
queues: [{ name: q, pool: nowhere, weight: 101, sharedWeight: -1 }]
agents:
  - { name: bad, dispatch: { pull: {} }, leaseSeconds: 1, retryPolicy: { maxAttempts: 0, jitter: 2 }, throttles: [none] }
  - { name: good, dispatch: { pull: {} }, queue: absent, throttles: [absent, new] }
jobs:
  - { name: j, steps: [{ name: a, agent: bad, input: { $eval: 1 } }, { name: b, agent: ghost, dependsOn: [c], maxAttempts: 0 }] }
routes:
  - { name: r, topic: a.>.b, job: j, priority: 5000 }
  - { name: ok, topic: a, job: nothing }
  - { name: ' ', topic: a, job: j }
`,
  );
  const problems = outcome.kind === 'Refused' ? outcome.problems : [];
  expect(problems.map(({ noun, index, field }) => `${noun}s[${index}].${field}`)).toEqual([
    'throttles[1].name',
    'queues[0].weight',
    'queues[0].sharedWeight',
    'agents[0].retryPolicy.maxAttempts',
    'agents[0].retryPolicy.jitter',
    'agents[0].leaseSeconds',
    'agents[1].queue',
    'agents[1].throttles',
    'jobs[0].steps[0].input',
    'jobs[0].steps[1].maxAttempts',
    'routes[0].topic',
    'routes[0].priority',
    'routes[1].job',
    'routes[2].name',
  ]);
  for (const { field, message } of problems) {
    expect(message).not.toBe('');
    if (field?.includes('.')) expect(message).toContain(field);
  }
  expect(await configurationOf(plane)).toEqual(before);
});

test('an object may name what only the database has', async () => {
  await plane.agent('elsewhere');
  expect(told(await apply(plane, 'jobs: [{ name: there, steps: [{ name: a, agent: elsewhere }] }]'))).toEqual(
    ['create job there'],
  );
});

test('paused is as the manifest says, and as it is where it says nothing', async () => {
  const agent = (more: string) => `agents: [{ name: sleeper, dispatch: { pull: {} }${more} }]`;
  const state = async () =>
    (
      await plane.rows<{ paused: boolean; version: number }>(
        `select paused, version from runplane.agents where name = 'sleeper'`,
      )
    )[0];
  await apply(plane, agent(', paused: true'));
  expect(await state()).toEqual({ paused: true, version: 1 });
  const kept = await apply(plane, agent(', leaseSeconds: 5'));
  expect(kept).toMatchObject({ changes: [{ action: 'update', state: 'paused' }] });
  expect(await state()).toEqual({ paused: true, version: 2 });
  const resumed = await apply(plane, agent(', leaseSeconds: 5, paused: false'));
  expect(resumed).toMatchObject({
    changes: [{ fields: [{ path: 'paused', before: true, after: false }], state: null }],
  });
  await plane.services.configuration.pauseAgent({ name: 'sleeper' }, ann);
  expect(told(await apply(plane, agent(', leaseSeconds: 5')))).toEqual(['unchanged agent sleeper']);
});
