import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { transaction } from '../../src/db/transaction.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

const claimOne = async (options?: object) => {
  const [assignment] = await plane.claim(['a'], 1, options);
  if (!assignment) throw new Error('nothing to claim');
  return assignment;
};

describe('a current attempt', () => {
  test('completes its task and run, once however often it reports', async () => {
    const run = await plane.launch('one', { config: { x: 1 } });
    const assignment = await claimOne();
    expect(assignment.input).toEqual({ x: 1 });
    const result = {
      status: 'COMPLETED',
      output: { ok: true },
      usage: [{ model: 'm', inputTokens: 3, cost: '0.5' }],
    } as const;
    expect(await plane.report(assignment, result)).toMatchObject({
      outcome: 'APPLIED',
      taskStatus: 'COMPLETED',
    });
    expect(await plane.report(assignment, result)).toMatchObject({
      outcome: 'REPLAYED',
      taskStatus: 'COMPLETED',
    });
    expect(await plane.run(run)).toEqual({ status: 'COMPLETED', openTasks: 0 });
    expect(await plane.rows('select llm_cost from runplane.usage')).toHaveLength(1);
  });

  test('cannot report something else afterwards', async () => {
    await plane.launch('one');
    const assignment = await claimOne();
    await plane.report(assignment, { status: 'COMPLETED', output: 1 });
    expect(await plane.report(assignment, { status: 'COMPLETED', output: 2 })).toMatchObject({
      kind: 'ResultConflict',
    });
    expect(await plane.rows('select output from runplane.tasks')).toEqual([{ output: 1 }]);
  });

  test('is tried again until its attempts are spent, then leaves a dead letter', async () => {
    const run = await plane.launch('one', { labels: [{ key: 'kb_id', value: 'kb7' }] });
    for (const expected of ['ENQUEUED', 'ENQUEUED', 'FAILED']) {
      const outcome = await plane.report(await claimOne(), {
        status: 'FAILED',
        error: { code: 'BOOM', message: 'no' },
      });
      expect(outcome).toMatchObject({ outcome: 'APPLIED', taskStatus: expected });
    }
    expect(await plane.run(run)).toMatchObject({ status: 'FAILED' });
    expect(
      await plane.rows('select scope, scope_id, error_code, fail_count from runplane.dead_letters'),
    ).toEqual([{ scope: 'knowledge_base', scope_id: 'kb7', error_code: 'BOOM', fail_count: 1 }]);
  });

  test('fails at once when its error is permanent', async () => {
    await plane.launch('one');
    expect(
      await plane.report(await claimOne(), { status: 'FAILED', error: { code: 'BAD', kind: 'PERMANENT' } }),
    ).toMatchObject({ taskStatus: 'FAILED' });
  });

  test('hands its task back without spending an attempt, but not for ever', async () => {
    await plane.launch('one', { steps: [{ step: 'a', maxAttempts: 1 }] });
    for (let i = 0; i < 20; i++) {
      expect(await plane.report(await claimOne(), { status: 'RELEASED' })).toMatchObject({
        taskStatus: 'ENQUEUED',
      });
    }
    expect(await plane.report(await claimOne(), { status: 'RELEASED' })).toMatchObject({
      taskStatus: 'FAILED',
    });
  });

  test('is still current after its lease expired, until the sweep', async () => {
    await plane.launch('one');
    const assignment = await claimOne();
    await plane.expire(assignment);
    expect(await plane.report(assignment, { status: 'COMPLETED' })).toMatchObject({ outcome: 'APPLIED' });
    expect(await plane.rows('select status, late from runplane.attempts')).toEqual([
      { status: 'COMPLETED', late: false },
    ]);
  });

  test('with a cancel requested: done work wins, a failure is not tried again', async () => {
    for (const [status, expected] of [
      ['COMPLETED', 'COMPLETED'],
      ['FAILED', 'CANCELLED'],
      ['CANCELLED', 'CANCELLED'],
      ['RELEASED', 'CANCELLED'],
    ] as const) {
      await plane.launch('one');
      const assignment = await claimOne();
      await plane.rows(
        `update runplane.leases set cancel_deadline = runplane.clock() + interval '30 seconds'`,
      );
      expect(await plane.report(assignment, { status })).toMatchObject({
        outcome: 'APPLIED',
        taskStatus: expected,
      });
    }
  });

  test('with a wrong token or id reports nothing', async () => {
    await plane.launch('one');
    const assignment = await claimOne();
    const { attemptId, leaseToken } = plane.credentials(assignment);
    const outcomes = await plane.services.results.reportResults([
      { attemptId, leaseToken: `${leaseToken.slice(0, -1)}x`, status: 'COMPLETED' },
      { attemptId: 'att_nonsense', leaseToken, status: 'COMPLETED' },
    ]);
    expect(outcomes.map((o) => o.kind)).toEqual(['LeaseTokenInvalid', 'LeaseTokenInvalid']);
  });
});

describe('a lost attempt', () => {
  const lose = async () => {
    const assignment = await claimOne();
    await plane.expire(assignment);
    expect(await plane.sweep(assignment)).toMatchObject({ answer: 'APPLIED', taskStatus: 'ENQUEUED' });
    return assignment;
  };

  test('completes its task after all when it reports in time', async () => {
    const run = await plane.launch('one');
    const lost = await lose();
    const result = { status: 'COMPLETED', output: 'late', usage: [{ inputTokens: 1 }] } as const;
    expect(await plane.report(lost, result)).toMatchObject({ outcome: 'APPLIED', taskStatus: 'COMPLETED' });
    expect(await plane.report(lost, result)).toMatchObject({ outcome: 'REPLAYED' });
    expect(await plane.run(run)).toMatchObject({ status: 'COMPLETED' });
    expect(await plane.rows('select status, late from runplane.attempts')).toEqual([
      { status: 'LOST', late: true },
    ]);
    expect(await plane.claim(['a'])).toEqual([]);
  });

  test('ends a newer attempt by completing, and the usage of both is booked', async () => {
    await plane.launch('one');
    const lost = await lose();
    const newer = await claimOne();
    expect(newer.number).toBe(2);
    expect(await plane.report(lost, { status: 'COMPLETED', usage: [{ inputTokens: 1 }] })).toMatchObject({
      outcome: 'APPLIED',
    });
    expect(await plane.report(newer, { status: 'COMPLETED', usage: [{ inputTokens: 2 }] })).toMatchObject({
      outcome: 'SUPERSEDED',
      taskStatus: 'COMPLETED',
    });
    expect(await plane.report(newer, { status: 'COMPLETED', usage: [{ inputTokens: 2 }] })).toMatchObject({
      outcome: 'REPLAYED',
    });
    expect(await plane.rows('select number, status, late from runplane.attempts order by number')).toEqual([
      { number: 1, status: 'LOST', late: true },
      { number: 2, status: 'CANCELLED', late: true },
    ]);
    expect(await plane.rows('select sum(input_tokens)::int as sum from runplane.usage')).toEqual([
      { sum: 3 },
    ]);
  });

  test('changes nothing by failing, cancelling or releasing late', async () => {
    for (const status of ['FAILED', 'CANCELLED', 'RELEASED'] as const) {
      await plane.launch('one');
      expect(await plane.report(await lose(), { status })).toMatchObject({
        outcome: 'SUPERSEDED',
        taskStatus: 'ENQUEUED',
      });
      await plane.report(await claimOne(), { status: 'COMPLETED' });
    }
  });

  test('is lost at most five times in a row, without spending attempts', async () => {
    const run = await plane.launch('one');
    for (let i = 0; i < 4; i++) await lose();
    const assignment = await claimOne();
    await plane.expire(assignment);
    expect(await plane.sweep(assignment)).toMatchObject({ taskStatus: 'FAILED' });
    expect(await plane.run(run)).toMatchObject({ status: 'FAILED' });
    expect(await plane.rows('select error_code from runplane.dead_letters')).toEqual([
      { error_code: 'LEASE_LOST' },
    ]);
    expect(
      await plane.rows('select count(*) filter (where counted)::int as counted from runplane.attempts'),
    ).toEqual([{ counted: 0 }]);
  });

  test('is not lost when a heartbeat came before the sweep', async () => {
    await plane.launch('one');
    const assignment = await claimOne();
    await plane.expire(assignment);
    const [status] = await plane.services.dispatch.extendLeases([
      { ...plane.credentials(assignment), progress: 0.5, checkpoint: { page: 3 } },
    ]);
    expect(status).toMatchObject({ state: 'HELD' });
    expect(await plane.sweep(assignment)).toEqual({ answer: 'NOTHING' });
    await plane.expire(assignment);
    await plane.sweep(assignment);
    const [gone] = await plane.services.dispatch.extendLeases([plane.credentials(assignment)]);
    expect(gone).toMatchObject({ state: 'STALE' });
    expect((await claimOne()).checkpoint).toEqual({ page: 3 });
  });
});

test('a heartbeat that is under way when the sweep looks keeps the lease', async () => {
  await plane.launch('one');
  const assignment = await claimOne();
  await plane.expire(assignment);
  const [sweep] = await transaction(plane.database.db, async (tx) => {
    await tx.query({
      text: `update runplane.leases set expires_at = runplane.clock() + interval '1 minute'`,
    });
    const swept = plane.sweep(assignment);
    await plane.untilBlocked(1);
    // In an array, because a promise would be awaited here.
    return [swept];
  });
  expect(await sweep).toEqual({ answer: 'NOTHING' });
  expect(await plane.report(assignment, { status: 'COMPLETED' })).toMatchObject({ outcome: 'APPLIED' });
});

test('a result makes each partition of an asset once, else one of two would be lost', async () => {
  await plane.launch('one');
  const attempt = await claimOne();
  const made = (...partitions: (string | null)[]) =>
    plane.report(attempt, {
      status: 'COMPLETED',
      materializations: partitions.map((partition, n) => ({ assetKey: 'text', partition, metadata: { n } })),
    });
  expect(await made('a', null, 'a')).toMatchObject({ kind: 'InvalidInput', field: 'materializations[2]' });
  expect(await made(null, null)).toMatchObject({ kind: 'InvalidInput', field: 'materializations[1]' });
  expect(await made(...Array.from({ length: 1001 }, (_, i) => `p${i}`))).toMatchObject({
    kind: 'InvalidInput',
    field: 'materializations',
  });
  expect(await made('a', null)).toMatchObject({ outcome: 'APPLIED' });
  expect(await plane.rows('select partition from runplane.materializations order by id')).toHaveLength(2);
});
