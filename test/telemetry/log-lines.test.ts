import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Claimed, type ServerProcess, Servers } from './server.ts';

let servers: Servers;
beforeEach(async () => {
  servers = await Servers.create();
});
afterEach(() => servers.stop());

const stages = ['intake', 'claim', 'dispatch', 'attempt', 'result'];

const linesOf = (server: ServerProcess, correlationId: string): Record<string, unknown>[] =>
  server.lines().filter((line) => line.correlationId === correlationId);

/** The lease or the time of an attempt is over: the sweeper finds it. */
const expire = (column: 'expires_at' | 'timeout_at') =>
  servers.database.db.query({
    text: `update runplane.leases set lease_seconds = 0, ${column} = runplane.clock() - interval '1 second'`,
  });

test('every line that tells of work on its way has its correlation id', async () => {
  const server = await servers.start({ LOG_LEVEL: 'debug' });
  await servers.define(server, 'a', 'timeoutSeconds: 3600');
  await server.ask(`saveRoute(input: { name: "r" topic: "docs.*" job: "a" }) { __typename }`);
  const input = `topic: "docs.new" payload: { secret: "hunter2" } correlationId: "c-event"`;
  const { runIds } = await server.ask<{ runIds: string[] }>(
    `publishEvent(input: { ${input} }) { ... on PublishEventSuccess { runIds } }`,
  );
  const first = await servers.claim(server, 'a');
  await servers.report(server, first, 'status: FAILED error: { code: "BOOM", message: "hunter2" }');
  const second = await servers.claim(server, 'a');
  await servers.report(server, second, 'status: COMPLETED output: "hunter2"');
  await servers.report(server, second, 'status: COMPLETED output: "hunter2"');

  const own = await servers.launch(server, 'a');
  await servers.claim(server, 'a');
  await expire('expires_at');
  await servers.claim(server, 'a');
  await expire('timeout_at');
  const late = await servers.claim(server, 'a');
  await servers.report(server, late, 'status: CANCELLED');
  const rerun = await server.ask<{ runId: string }>(
    `rerun(input: { runId: "${own}" }) { ... on LaunchRunSuccess { runId } }`,
  );
  await servers.report(server, await servers.claim(server, 'a'), 'status: COMPLETED');
  await server.process.end('SIGTERM');

  const told = server.lines().filter(({ stage }) => stage !== undefined);
  // A launch without one is known by its id, and so is what belongs to it, its rerun included.
  expect(new Set(told.map(({ correlationId }) => correlationId))).toEqual(new Set(['c-event', own]));
  for (const id of ['c-event', own])
    expect(new Set(linesOf(server, id).flatMap(({ stage }) => stage ?? []))).toEqual(new Set(stages));
  const path = linesOf(server, 'c-event').map(({ stage, msg, status, answer }) => ({
    stage,
    msg,
    status,
    answer,
  }));
  expect(path).toMatchObject([
    { stage: 'intake', msg: 'taken in' },
    { stage: 'claim' },
    { stage: 'dispatch' },
    { stage: 'attempt', status: 'FAILED' },
    { stage: 'result', answer: 'APPLIED' },
    { stage: 'claim' },
    { stage: 'dispatch' },
    { stage: 'attempt', status: 'COMPLETED' },
    { stage: 'result', answer: 'APPLIED' },
    { stage: 'result', answer: 'REPLAYED' },
  ]);
  expect(linesOf(server, 'c-event')[0]).toMatchObject({ topic: 'docs.new', runIds });
  expect(told).toContainEqual(
    expect.objectContaining({ stage: 'intake', parentRunId: own, runIds: [rerun.runId] }),
  );
  expect(server.process.output()).not.toContain('hunter2');
});

test('a handler in the server has the same lines', async () => {
  const server = await servers.start({ LOG_LEVEL: 'debug' });
  const message = `pipeline_id: "p" correlation_id: "q-1" prompt: "?" usage: { prompt_tokens: 1 }`;
  await server.ask(
    `publishEvent(input: { topic: "pipeline.knowledge.embedding" payload: { ${message} } }) { __typename }`,
  );
  const results = () => linesOf(server, 'q-1').filter(({ stage }) => stage === 'result');
  await expect.poll(() => results().length, { timeout: 15_000 }).toBe(2);
  expect(linesOf(server, 'q-1').map(({ stage }) => stage)).toEqual([...stages, ...stages.slice(1)]);
});

test('at other times only lost work is told of, with its correlation id', async () => {
  const server = await servers.start({ LOG_LEVEL: 'info' });
  await servers.define(server, 'a', 'timeoutSeconds: 3600');
  await servers.launch(server, 'a', 'correlationId: "c-1"');
  const claimed: Claimed[] = [];
  for (const column of ['expires_at', 'timeout_at'] as const) {
    claimed.push(await servers.claim(server, 'a'));
    await expire(column);
  }
  claimed.push(await servers.claim(server, 'a'));
  await servers.report(server, claimed[2] as Claimed, 'status: FAILED error: { code: "BOOM", message: "" }');
  await servers.launch(server, 'a', 'correlationId: "c-2"');
  await servers.report(server, await servers.claim(server, 'a'), 'status: COMPLETED');
  await server.process.end('SIGTERM');
  expect(linesOf(server, 'c-1')).toMatchObject([
    { level: 40, attemptId: claimed[0]?.attemptId, status: 'LOST' },
    { level: 40, attemptId: claimed[1]?.attemptId, status: 'TIMED_OUT' },
    { level: 40, attemptId: claimed[2]?.attemptId, status: 'FAILED', errorCode: 'BOOM' },
  ]);
  expect(linesOf(server, 'c-2')).toEqual([]);
});
