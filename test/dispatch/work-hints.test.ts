import { createClient } from 'graphql-sse';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { WorkAvailable, WorkHintsOf } from '../../src/dispatch/types.ts';
import { newUuid } from '../../src/domain/ids.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { adminToken, bearer, startGuardedServer } from '../support/guarded-server.ts';
import { startTestServer } from '../support/server.ts';

describe('a stream of hints', () => {
  let plane: ControlPlane;
  beforeEach(async () => {
    plane = await ControlPlane.start();
    await plane.agent('a');
    await plane.agent('b');
    await plane.job('a', ['a']);
    await plane.job('b', ['b']);
  });
  afterEach(() => plane.stop());

  const open = (of: WorkHintsOf) => plane.services.workHints.open(of);
  async function next(stream: AsyncIterator<WorkAvailable>): Promise<readonly string[]> {
    const { done, value } = await stream.next();
    if (done) throw new Error('the stream is over');
    return value.agents;
  }

  test('begins with how it is, then tells of what comes, of its own agents alone', async () => {
    await plane.launch('b');
    const both = await open({ agents: ['a', 'b'] });
    expect(await next(both)).toEqual(['b']);
    const stream = await open({ agents: ['a'] });
    expect(await next(stream)).toEqual([]);
    const hint = next(stream);
    await plane.launch('b');
    await plane.launch('a');
    expect(await hint).toEqual(['a']);
    expect(await next(both)).toContain('a');
    await stream.return?.();
    await both.return?.();
  });

  test('hears of work that another replica took in', async () => {
    const other = await ControlPlane.start({ database: plane.database });
    const stream = await other.services.workHints.open({ agents: ['a'] });
    await next(stream);
    const hint = next(stream);
    await plane.launch('a');
    expect(await hint).toEqual(['a']);
    await stream.return?.();
    await other.services.stop();
  });

  test('is silent while there is no room, and tells when there is again', async () => {
    await plane.agent('a', { maxConcurrentTasks: 1 });
    await plane.launch('a');
    await plane.launch('a');
    const [task] = await plane.claim(['a'], 1);
    if (!task) throw new Error('nothing to claim');
    const stream = await open({ agents: ['a'] });
    expect(await next(stream)).toEqual([]);
    const hint = next(stream);
    await plane.report(task, { status: 'COMPLETED' });
    expect(await hint).toEqual(['a']);
    await stream.return?.();
  });

  test.each([
    ['paused agents', () => plane.services.configuration.pauseAgent({ name: 'a' }, actor)],
    ['paused queues', () => plane.services.configuration.pauseQueue({ name: 'default' }, actor)],
  ])('is silent about %s', async (_, pause) => {
    await plane.launch('a');
    await pause();
    const stream = await open({ agents: ['a'] });
    expect(await next(stream)).toEqual([]);
    const hint = next(stream);
    await plane.services.configuration.resumeAgent({ name: 'a' }, actor);
    await plane.services.configuration.resumeQueue({ name: 'default' }, actor);
    expect(await hint).toEqual(['a']);
    await stream.return?.();
  });

  test('by pool is of the agents of its queues, and with agents of what matches both', async () => {
    const { configuration } = plane.services;
    await configuration.savePool({ name: 'gpu', slotsPerReplica: 1 }, actor);
    await configuration.saveQueue({ name: 'gpu', pool: 'gpu' }, actor);
    await plane.agent('c', { queue: 'gpu' });
    await plane.job('c', ['c']);
    for (const job of ['a', 'b', 'c']) await plane.launch(job);
    for (const [of, agents] of [
      [{ pool: 'gpu' }, ['c']],
      [{ pool: 'gpu', agents: ['a'] }, []],
      [{ pool: 'gpu', agents: ['a', 'c'] }, ['c']],
    ] as const) {
      const stream = await open(of);
      expect(await next(stream)).toEqual(agents);
      await stream.return?.();
    }
  });

  test.each([
    [{}, 'agents'],
    [{ agents: ['nobody'] }, 'agents[0]'],
    [{ pool: 'none' }, 'pool'],
    [{ agents: [' '] }, 'agents[0]'],
  ])('of %j is refused, naming %s', async (of, field) => {
    await expect(open(of)).rejects.toMatchObject({ problem: { kind: 'InvalidInput', field } });
  });

  test('ends at once when its client leaves, and when the process stops', async () => {
    const stream = await open({ agents: ['a'] });
    await next(stream);
    const waiting = stream.next();
    await stream.return?.();
    expect(await waiting).toMatchObject({ done: true });
    const other = await open({ agents: ['a'] });
    await next(other);
    const end = other.next();
    await plane.services.drain();
    expect(await end).toMatchObject({ done: true });
    expect(await (await open({ agents: ['a'] })).next()).toMatchObject({ done: true });
  });
});

test('a worker that sleeps on hints executes everything, and asks only when it is told to', async () => {
  const server = await startTestServer();
  const { plane } = server;
  await plane.agent('a', { maxConcurrentTasks: 2 });
  await plane.job('one', ['a']);
  const client = createClient({ url: server.url, fetchFn: fetch, abortControllerImpl: AbortController });
  const workerId = newUuid();
  let claims = 0;
  let completed = 0;
  const work = async (): Promise<void> => {
    for (;;) {
      claims++;
      const { data } = await server.post(
        `mutation($input: ClaimTasksInput!) { claimTasks(input: $input) { ... on ClaimTasksSuccess { assignments { attemptId leaseToken } } } }`,
        { input: { workerId, agents: ['a'], limit: 2 } },
      );
      const { assignments } = (data as unknown as { claimTasks: { assignments: object[] } }).claimTasks;
      if (assignments.length === 0) return;
      await server.post(
        `mutation($inputs: [ReportResultInput!]!) { reportResults(inputs: $inputs) { __typename } }`,
        { inputs: assignments.map((assignment) => ({ ...assignment, status: 'COMPLETED' })) },
      );
      completed += assignments.length;
    }
  };
  const hints = client.iterate<{ workAvailable: { agents: string[] } }>({
    query: 'subscription { workAvailable(agents: ["a"]) { agents } }',
  });
  expect(await hints.next()).toMatchObject({ value: { data: { workAvailable: { agents: [] } } } });
  const sleeping = (async () => {
    for await (const { data } of hints) if (data?.workAvailable.agents.includes('a')) await work();
  })();
  expect(claims).toBe(0);
  await plane.services.intake.launchRuns(Array.from({ length: 9 }, () => ({ job: 'one' })));
  await expect.poll(() => completed, { timeout: 10_000 }).toBe(9);
  await plane.launch('one');
  await expect.poll(() => completed, { timeout: 10_000 }).toBe(10);
  client.dispose();
  await sleeping;
  await server.stop();
});

test('the stream needs WORK, and reaches what the token reaches', async () => {
  const server = await startGuardedServer();
  const { plane } = server;
  for (const agent of ['a', 'b']) {
    await plane.agent(agent);
    await plane.job(agent, [agent]);
    await plane.launch(agent);
  }
  const { secret: reader } = await server.token({ scopes: ['READ'] });
  const { secret: worker } = await server.token({ scopes: ['WORK'], agents: ['a'] });
  /** The first message. */
  const first = async (token: string, args: string): Promise<string> => {
    const response = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...bearer(token) },
      body: JSON.stringify({ query: `subscription { workAvailable(${args}) { agents } }` }),
    });
    if (!response.ok) return `${response.status} ${await response.text()}`;
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (reader && !/data: .*\n/.test(text)) text += (await reader.read()).value ?? '';
    await reader?.cancel();
    return text;
  };
  expect(await first(reader, 'agents: ["a"]')).toMatch(/^403 .*"code":"FORBIDDEN","scope":"WORK"/);
  expect(await first(worker, 'agents: ["b"]')).toMatch(/^403 .*"code":"FORBIDDEN","scope":"WORK"/);
  expect(await first(worker, 'agents: ["a"]')).toContain('"agents":["a"]');
  // Of a pool only what the token reaches.
  expect(await first(worker, 'pool: "core"')).toContain('"agents":["a"]');
  expect(await first(adminToken, 'pool: "core"')).toContain('"agents":["a","b"]');
  expect(await first(adminToken, 'agents: ["nobody"]')).toContain(
    '"code":"BAD_USER_INPUT","field":"agents[0]"',
  );
  await server.stop();
});
