import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { shippedPools } from '../../src/domain/registry.ts';
import { seedRegistry } from '../../src/operator/seed-registry.ts';
import { forgetAudit } from '../support/forget-audit.ts';
import { actor, inputs, type Operator, startOperator } from './fixture.ts';

let operator: Operator;
beforeAll(async () => {
  operator = await startOperator();
});
afterAll(() => operator.close());
beforeEach(async () => {
  await forgetAudit(operator.database.db);
});

const query = async (text: string) => (await operator.database.db.query({ text })).rows;

describe('saveAgent', () => {
  it('fills in the defaults', async () => {
    await operator.configuration.saveAgent({ name: 'plain', dispatch: { pull: {} } }, actor);
    expect((await operator.audit())[0]?.after).toEqual({
      batchBySerialKey: false,
      description: null,
      dispatchKind: 'PULL',
      handler: null,
      queue: 'default',
      throttles: [],
      maxConcurrentTasks: null,
      retryPolicy: {
        maxAttempts: 3,
        backoff: 'EXPONENTIAL',
        initialDelaySeconds: 10,
        maxDelaySeconds: 600,
        jitter: 0.1,
        overrides: [{ code: 'LOCK_CONFLICT', retry: true, delaySeconds: 15, countsAttempt: true }],
      },
      leaseSeconds: 60,
      timeoutSeconds: null,
      defaultModel: null,
      computeCostPerHour: null,
      version: 1,
    });
  });

  it('takes the order of throttles and the spelling of a price as no change', async () => {
    const [input] = inputs.agent;
    const saved = await operator.configuration.saveAgent(input, actor);
    const same = { ...input, throttles: ['gpu', 'openai'], computeCostPerHour: '1.25' };
    expect(await operator.configuration.saveAgent(same, actor)).toEqual(saved);
  });

  it.each([
    ['0', '0'],
    ['0.000', '0'],
    ['000.500', '0.5'],
    ['10', '10'],
    ['999999999999999999.999999999999', '999999999999999999.999999999999'],
  ])('keeps the price %s as %s', async (given, kept) => {
    const input = { name: 'priced', dispatch: { pull: {} }, computeCostPerHour: given } as const;
    const saved = await operator.configuration.saveAgent(input, actor);
    expect(await operator.configuration.saveAgent({ ...input, computeCostPerHour: kept }, actor)).toEqual(
      saved,
    );
    expect(
      await query(
        "select trim_scale(compute_cost_per_hour)::text as cost from runplane.agents where name = 'priced'",
      ),
    ).toEqual([{ cost: kept }]);
  });
});

describe('saveJob', () => {
  it('keeps every version and creates the assets that it names', async () => {
    const [first, second] = inputs.job;
    await operator.configuration.saveJob(first, actor);
    await operator.configuration.saveJob(second, actor);
    const versions = await query(
      `select v.version, v.config_schema, v.steps from runplane.job_versions v join runplane.jobs j on j.id = v.job_id
        where j.name = 'digest' order by v.version`,
    );
    const [parser] = await query("select id from runplane.agents where name = 'parser'");
    expect(versions).toEqual([
      {
        version: 1,
        config_schema: first.configSchema,
        steps: [expect.objectContaining({ agentId: parser?.id }), expect.anything()],
      },
      {
        version: 2,
        config_schema: null,
        steps: [
          {
            name: 'parse',
            agentId: parser?.id,
            dependsOn: [],
            when: 'DEPENDENCIES_COMPLETED',
            cancellable: true,
            optional: false,
            input: null,
            assetKey: null,
            readsAssetKeys: [],
            maxAttempts: null,
          },
        ],
      },
    ]);
    expect(await query('select key from runplane.assets order by key')).toEqual([
      { key: 'text' },
      { key: 'vectors' },
    ]);
  });

  it('takes the order of keys as no change, and that of steps as one', async () => {
    const steps = [
      { name: 'a', agent: 'parser', input: { x: 1, y: -0 } },
      { name: 'b', agent: 'parser' },
    ];
    const save = (given: typeof steps) =>
      operator.configuration.saveJob({ name: 'ordered', steps: given }, actor);
    expect(await save(steps)).toMatchObject({ version: 1 });
    expect(
      await save([{ name: 'a', agent: 'parser', input: { y: 0, x: 1 } }, ...steps.slice(1)]),
    ).toMatchObject({ version: 1 });
    expect(await save(steps.toReversed())).toMatchObject({ version: 2 });
  });
});

describe.each([
  ['queue', 'pauseQueue', 'resumeQueue', 'default', 'SaveQueueSuccess'],
  ['agent', 'pauseAgent', 'resumeAgent', 'parser', 'SaveAgentSuccess'],
] as const)('pausing a %s', (noun, pause, resume, name, success) => {
  it('is audited with its reason, and raises the version, only when it changes something', async () => {
    const { configuration } = operator;
    expect(await configuration[resume]({ name }, actor)).toMatchObject({ kind: success, version: 1 });
    const paused = await configuration[pause]({ name, reason: 'incident' }, actor);
    expect(paused).toEqual({ kind: success, id: expect.any(String), name, version: 2 });
    expect(await configuration[pause]({ name, reason: 'again' }, actor)).toEqual(paused);
    expect(await operator.row(`${noun}s`, name)).toMatchObject({ paused: true });
    expect(await configuration[resume]({ name }, actor)).toEqual({ ...paused, version: 3 });
    expect(await operator.row(`${noun}s`, name)).toMatchObject({ paused: false });
    expect(await operator.audit()).toMatchObject([
      {
        action: `${noun}.pause`,
        target: name,
        before: { paused: false, version: 1 },
        after: { paused: true, version: 2 },
        reason: 'incident',
      },
      {
        action: `${noun}.resume`,
        before: { paused: true, version: 2 },
        after: { paused: false, version: 3 },
        reason: null,
      },
    ]);
  });

  it('is refused for an unknown name or a reason that cannot be stored', async () => {
    const { configuration } = operator;
    expect(await configuration[pause]({ name: 'nobody' }, actor)).toMatchObject({ kind: 'NotFound' });
    expect(await configuration[pause]({ name: '' }, actor)).toMatchObject({
      kind: 'InvalidInput',
      field: 'name',
    });
    expect(await configuration[pause]({ name, reason: 'a\0' }, actor)).toMatchObject({
      kind: 'InvalidInput',
      field: 'reason',
    });
    expect(await operator.audit()).toEqual([]);
  });
});

it('leaves a paused agent paused when it is saved', async () => {
  const { configuration } = operator;
  await configuration.pauseAgent({ name: 'embedder' }, actor);
  await configuration.saveAgent({ name: 'embedder', dispatch: { inline: { handler: 'other' } } }, actor);
  expect(await operator.row('agents', 'embedder')).toMatchObject({
    paused: true,
    handler: 'other',
    version: 3,
  });
});

describe('deleteRoute', () => {
  it('deletes a route once, with what it was in the audit entry', async () => {
    const { configuration } = operator;
    const [input] = inputs.route;
    const saved = await configuration.saveRoute(input, actor);
    const id = 'id' in saved ? saved.id : '';
    expect(await configuration.deleteRoute({ name: input.name }, actor)).toEqual({
      kind: 'DeleteSuccess',
      id,
    });
    expect(await configuration.deleteRoute({ name: input.name }, actor)).toEqual({
      kind: 'NotFound',
      message: 'There is no route "uploads".',
    });
    expect(await configuration.deleteRoute({ name: ' ' }, actor)).toMatchObject({ kind: 'NotFound' });
    const [save, deletion, ...others] = await operator.audit();
    expect(others).toEqual([]);
    expect(deletion).toMatchObject({
      action: 'route.delete',
      target: 'uploads',
      before: save?.after,
      after: null,
    });
  });
});

describe('seedRegistry', () => {
  it('creates what is missing, keeps what was saved, and is not audited', async () => {
    const { configuration, database } = operator;
    await configuration.savePool({ name: 'core', slotsPerReplica: 1 }, actor);
    await database.db.query({ text: "delete from runplane.queues where name = 'wiki'" });
    await forgetAudit(database.db);
    await Promise.all([seedRegistry(database.db), seedRegistry(database.db)]);
    const rows = await query(
      `select p.name as pool, p.slots_per_replica as slots, array_agg(q.name order by q.name) filter (where q.id is not null) as queues
         from runplane.pools p left join runplane.queues q on q.pool_id = p.id group by p.id order by p.name`,
    );
    expect(rows).toEqual(
      shippedPools
        .map((pool) => ({
          pool: pool.name,
          slots: pool.name === 'core' ? 1 : pool.slotsPerReplica,
          queues: pool.queues.length > 0 ? pool.queues.map((queue) => queue.name).sort() : null,
        }))
        .sort((a, b) => (a.pool < b.pool ? -1 : 1)),
    );
    expect(await operator.audit()).toEqual([]);
  });
});
