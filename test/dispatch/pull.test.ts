import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { toPublicId } from '../../src/domain/ids.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.agent('b', { queue: 'interactive' });
  await plane.agent('wiki', { queue: 'wiki' });
  await plane.agent('inside', { dispatch: { inline: { handler: 'h' } } });
  for (const name of ['a', 'b', 'wiki']) await plane.job(name, [name]);
});
afterEach(() => plane.stop());

const claim = (input: object) => plane.services.dispatch.claimTasks({ workerId: 'w', limit: 10, ...input });

describe('a claim', () => {
  test('waits for work and gets it when it comes', async () => {
    const waiting = claim({ agents: ['a'], waitSeconds: 20 });
    await plane.rows('select pg_sleep(0.2)');
    const run = await plane.launch('a');
    expect(await waiting).toMatchObject({ assignments: [{ runId: run, agent: 'a', number: 1 }] });
  });

  test('waits for the window of a rate and gets the next one when it moves on', async () => {
    const actor = { name: 'test', requestId: null };
    await plane.services.configuration.saveThrottle({ name: 'api', maxRequestsPerSecond: 2 }, actor);
    await plane.agent('a', { throttles: ['api'] });
    for (let i = 0; i < 4; i++) await plane.launch('a');
    for (let i = 0; i < 2; i++)
      expect(await claim({ agents: ['a'], waitSeconds: 20 })).toMatchObject({ assignments: [{}, {}] });
  });

  test('ends its wait empty, when its client left at once', async () => {
    expect(await claim({ agents: ['a'], waitSeconds: 0.1 })).toMatchObject({ assignments: [] });
    const left = new AbortController();
    const waiting = plane.services.dispatch.claimTasks(
      { workerId: 'w', limit: 1, agents: ['a'], waitSeconds: 20 },
      left.signal,
    );
    left.abort();
    expect(await waiting).toMatchObject({ assignments: [] });
    await plane.launch('a');
    expect(await plane.rows('select attempt_id from runplane.leases')).toEqual([]);
  });

  test('that fails waits for nothing any more', async () => {
    const before = plane.services.kept();
    await plane.rows('alter function runplane.claim_tasks rename to claim_tasks_of_another_version');
    await expect(claim({ agents: ['a'], waitSeconds: 20 })).rejects.toThrow('claim_tasks');
    expect(plane.services.kept()).toEqual(before);
  });

  test('that is repeated tells the timeout that its attempts have, whatever the agent has by now', async () => {
    await plane.agent('a', { timeoutSeconds: 60 });
    await plane.launch('a');
    const repeated = () => claim({ agents: ['a'], idempotencyKey: 'k' });
    expect(await repeated()).toMatchObject({ assignments: [{ timeoutSeconds: 60 }] });
    await plane.agent('a', { timeoutSeconds: 5 });
    expect(await repeated()).toMatchObject({ assignments: [{ timeoutSeconds: 60 }] });
  });

  test('that is repeated with its key gives the same leases again, one with another key does not', async () => {
    for (let i = 0; i < 4; i++) await plane.launch('a');
    const first = await claim({ agents: ['a'], limit: 2, idempotencyKey: 'k1' });
    const [again, parallel] = await Promise.all([
      claim({ agents: ['a'], limit: 2, idempotencyKey: 'k1' }),
      claim({ agents: ['a'], limit: 2, idempotencyKey: 'k2' }),
    ]);
    const key = (outcome: unknown) =>
      (outcome as { assignments: { attemptId: string; leaseToken: string }[] }).assignments.map((a) => [
        a.attemptId,
        a.leaseToken,
      ]);
    expect(key(again)).toEqual(key(first));
    expect(key(parallel)).toHaveLength(2);
    expect(await plane.rows('select attempt_id from runplane.leases')).toHaveLength(4);
  });

  test('repeated while the first is under way claims once', async () => {
    for (let i = 0; i < 10; i++) await plane.launch('a');
    await Promise.all(
      Array.from({ length: 8 }, () => claim({ agents: ['a'], limit: 3, idempotencyKey: 'k' })),
    );
    expect(await plane.rows('select attempt_id from runplane.leases')).toHaveLength(3);
  });

  test('by pool takes the agents of its queues, by both what matches both', async () => {
    for (const job of ['a', 'b', 'wiki']) await plane.launch(job);
    expect(await claim({ pool: 'wiki' })).toMatchObject({ assignments: [{ agent: 'wiki' }] });
    expect(await claim({ pool: 'wiki', agents: ['a'] })).toMatchObject({ assignments: [] });
    expect(await claim({ pool: 'core', agents: ['a'] })).toMatchObject({ assignments: [{ agent: 'a' }] });
    expect(await claim({ pool: 'core' })).toMatchObject({ assignments: [{ agent: 'b' }] });
  });

  test.each([
    [{}, 'agents'],
    [{ agents: ['nobody'] }, 'agents[0]'],
    [{ agents: ['a', 'inside'] }, 'agents[1]'],
    [{ agents: ['a'], limit: 0 }, 'limit'],
    [{ agents: ['a'], limit: 101 }, 'limit'],
    [{ agents: ['a'], waitSeconds: 26 }, 'waitSeconds'],
    [{ agents: ['a'], leaseSeconds: 4 }, 'leaseSeconds'],
    [{ agents: ['a'], workerId: ' ' }, 'workerId'],
    [{ agents: ['a'], slots: -1 }, 'slots'],
  ])('%j is refused, naming %s', async (input, field) => {
    expect(await claim(input)).toMatchObject({ kind: 'InvalidInput', field });
  });

  test('never takes more than the limits of the agent and of its throttles leave', async () => {
    const { configuration } = plane.services;
    const by = { name: 'test', requestId: null };
    await configuration.saveThrottle({ name: 't', maxConcurrentTasks: 3 }, by);
    await plane.agent('a', { throttles: ['t'], maxConcurrentTasks: 2 });
    await plane.agent('b', { throttles: ['t'] });
    for (let i = 0; i < 5; i++) for (const job of ['a', 'b']) await plane.launch(job);
    expect((await plane.claim(['a', 'b'])).map((task) => task.agent).sort()).toEqual(['a', 'a', 'b']);
    expect(await plane.claim(['a', 'b'])).toEqual([]);
    await configuration.saveThrottle({ name: 't', maxConcurrentTasks: 5 }, by);
    expect((await plane.claim(['a', 'b'])).map((task) => task.agent)).toEqual(['b', 'b']);
    // A lower limit ends nothing, it only lets nothing new begin.
    await configuration.saveThrottle({ name: 't', maxConcurrentTasks: 1 }, by);
    expect(await plane.claim(['a', 'b'])).toEqual([]);
    await configuration.saveThrottle({ name: 't', maxConcurrentTasks: 9 }, by);
  });

  test('passes over agents and queues that are paused', async () => {
    const by = { name: 'test', requestId: null };
    await plane.launch('a');
    await plane.launch('b');
    await plane.services.configuration.pauseAgent({ name: 'a' }, by);
    await plane.services.configuration.pauseQueue({ name: 'interactive' }, by);
    expect(await plane.claim(['a', 'b'])).toEqual([]);
    await plane.services.configuration.resumeAgent({ name: 'a' }, by);
    expect((await plane.claim(['a', 'b'])).map((task) => task.agent)).toEqual(['a']);
  });

  test('names the worker, which is then known as one', async () => {
    await claim({ agents: ['a'], name: 'box 7', slots: 4, client: 'py/1' });
    expect(await plane.rows('select worker_key, name, client, slots from runplane.workers')).toEqual([
      { worker_key: 'w', name: 'box 7', client: 'py/1', slots: 4 },
    ]);
  });
});

describe('a heartbeat', () => {
  test('extends the lease, tells of a cancel, and is stale without one', async () => {
    await plane.launch('a');
    const [task] = await plane.claim(['a'], 1, { leaseSeconds: 30 });
    const beat = (more: object = {}) =>
      plane.services.dispatch
        .extendLeases([{ ...plane.credentials(task as never), ...more }])
        .then(([status]) => status);
    await plane.expire(task as never);
    expect(await beat()).toMatchObject({ state: 'HELD', leaseSeconds: 30 });
    expect(
      await plane.rows(
        `select expires_at > runplane.clock() + interval '25 seconds' as extended from runplane.leases`,
      ),
    ).toEqual([{ extended: true }]);
    await plane.rows(`update runplane.leases set cancel_deadline = runplane.clock() + interval '30 seconds'`);
    expect(await beat()).toMatchObject({ state: 'CANCEL_REQUESTED', cancelDeadline: expect.any(Date) });
    const others = await plane.services.dispatch.extendLeases([
      { attemptId: toPublicId('att', crypto.randomUUID()), leaseToken: 'x' },
      { ...plane.credentials(task as never), leaseToken: 'wrong' },
    ]);
    expect(others.map(({ state }) => state)).toEqual(['STALE', 'STALE']);
    await plane.report(task as never, { status: 'CANCELLED' });
    expect(await beat()).toMatchObject({ state: 'STALE' });
  });

  test('books usage once per response, however often it is sent', async () => {
    await plane.launch('a');
    const [task] = await plane.claim(['a']);
    const usage = [{ responseId: 'r1', model: 'm', inputTokens: 10 }];
    for (let i = 0; i < 3; i++)
      await plane.services.dispatch.extendLeases([{ ...plane.credentials(task as never), usage }]);
    await plane.report(task as never, {
      status: 'COMPLETED',
      usage: [...usage, { responseId: 'r2', outputTokens: 5 }],
    });
    expect(
      await plane.rows(
        'select response_id, input_tokens, output_tokens from runplane.usage order by response_id',
      ),
    ).toEqual([
      { response_id: 'r1', input_tokens: 10, output_tokens: null },
      { response_id: 'r2', input_tokens: null, output_tokens: 5 },
    ]);
  });
});
