import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fromPublicId } from '../../src/domain/ids.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { type ServerProcess, Servers } from './server.ts';

let receiver: OtlpReceiver;
let servers: Servers;
beforeEach(async () => {
  receiver = await startOtlpReceiver();
  servers = await Servers.create();
});
afterEach(async () => {
  await servers.stop();
  await receiver.close();
});

const start = (env: Record<string, string> = {}): Promise<ServerProcess> =>
  servers.start({
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '50',
    ...env,
  });

const callerTrace = '4bf92f3577b34da6a3ce929d0e0e4736';
const callerSpan = '00f067aa0ba902b7';
const caller = { traceparent: `00-${callerTrace}-${callerSpan}-01` };
const unsampled = { traceparent: `00-${callerTrace}-${callerSpan}-00` };
const hex = (prefix: 'run' | 'att' | 'evt', id: string): string =>
  (fromPublicId(prefix, id) ?? '').replaceAll('-', '');

const named = (name: string): ReceivedSpan[] => receiver.spans.filter((span) => span.name === name);

async function only(name: string): Promise<ReceivedSpan> {
  await expect.poll(() => named(name).length, { timeout: 10_000 }).toBeGreaterThan(0);
  const [span, ...others] = named(name);
  expect(others).toEqual([]);
  return span as ReceivedSpan;
}

test('work that is asked for in a trace is one of its branches, from the request to the worker and back', async () => {
  const server = await start({ OTEL_SERVICE_NAME: 'plane', OTEL_RESOURCE_ATTRIBUTES: 'deployment=test' });
  await servers.define(server, 'a');
  const runId = await servers.launch(
    server,
    'a',
    'config: { n: 1 } correlationId: "c-1" priority: 3',
    caller,
  );
  const assignment = await servers.claim(server, 'a');
  const attemptSpan = hex('att', assignment.attemptId).slice(16);
  expect(assignment.traceparent).toBe(`00-${callerTrace}-${attemptSpan}-01`);
  const usage = `usage: [{ model: "m-1" provider: "p" inputTokens: 10 cacheReadTokens: 5 outputTokens: 7 reasoningTokens: 2 }]`;
  const worker = { traceparent: `00-${callerTrace}-bbbbbbbbbbbbbbbb-01` };
  expect(await servers.report(server, assignment, `status: COMPLETED output: "done" ${usage}`, worker)).toBe(
    'APPLIED',
  );

  const intake = await only('intake');
  const [claim, dispatch, attempt, result] = [
    await only('claim'),
    await only('dispatch'),
    await only('attempt'),
    await only('result'),
  ];
  const names = {
    'runplane.correlation_id': 'c-1',
    'runplane.run.id': runId,
  };
  const task = {
    ...names,
    'runplane.attempt.id': assignment.attemptId,
    'runplane.attempt.number': 1,
    'runplane.agent': 'a',
    'runplane.step': 'work',
  };
  for (const span of receiver.spans) expect(span.traceId).toBe(callerTrace);
  expect(intake).toMatchObject({
    parentSpanId: callerSpan,
    spanId: hex('run', runId).slice(16),
    attributes: {
      ...names,
      'runplane.job': 'a',
      'runplane.payload.size': 7,
      'runplane.intake.replayed': false,
    },
    resource: { 'service.name': 'plane', deployment: 'test', 'service.version': expect.any(String) },
  });
  expect(claim).toMatchObject({
    parentSpanId: intake.spanId,
    attributes: { ...task, 'runplane.queue': 'default', 'runplane.claim.tasks': 1 },
  });
  expect(dispatch).toMatchObject({
    parentSpanId: attemptSpan,
    attributes: { ...task, 'runplane.dispatch.to': 'WORKER' },
  });
  expect(attempt).toMatchObject({
    spanId: attemptSpan,
    parentSpanId: intake.spanId,
    status: { code: 0 },
    attributes: {
      ...task,
      'runplane.queue': 'default',
      'runplane.priority': 3,
      'runplane.attempt.status': 'COMPLETED',
      'runplane.task.status': 'COMPLETED',
      'runplane.task.retried': false,
      'runplane.input.size': 25,
      'runplane.output.size': 13,
      'gen_ai.usage.input_tokens': 15,
      'gen_ai.usage.cache_read.input_tokens': 5,
      'gen_ai.usage.output_tokens': 9,
      'gen_ai.usage.reasoning.output_tokens': 2,
      'gen_ai.response.model': 'm-1',
      'gen_ai.provider.name': 'p',
    },
  });
  expect(attempt.attributes).not.toHaveProperty('gen_ai.usage.cache_creation.input_tokens');
  expect(result).toMatchObject({
    parentSpanId: 'bbbbbbbbbbbbbbbb',
    attributes: { ...task, 'runplane.result.answer': 'APPLIED', 'runplane.result.by': 'REPORT' },
  });
  const [row] = (
    await servers.database.db.query<{ started: Date; finished: Date }>({
      text: 'select started_at as started, finished_at as finished from runplane.attempts',
    })
  ).rows;
  expect([attempt.startedAt, attempt.endedAt]).toEqual([row?.started.getTime(), row?.finished.getTime()]);
  expect(intake.startedAt).toBeLessThanOrEqual(intake.endedAt);
});

test('without a trace to continue, an event begins one: all runs that it launches are in it', async () => {
  const server = await start();
  await servers.define(server, 'a');
  for (const route of ['one', 'two'])
    await server.ask(`saveRoute(input: { name: "${route}" topic: "docs.*" job: "a" }) { __typename }`);
  const { eventId } = await server.ask<{ eventId: string }>(
    'publishEvent(input: { topic: "docs.new" payload: {} correlationId: "c-2" }) { ... on PublishEventSuccess { eventId } }',
  );
  for (const _ of ['one', 'two'])
    await servers.report(server, await servers.claim(server, 'a'), 'status: COMPLETED');
  await expect.poll(() => named('result').length, { timeout: 10_000 }).toBe(2);
  const intake = await only('intake');
  expect(intake).toMatchObject({
    traceId: hex('evt', eventId),
    attributes: {
      'runplane.topic': 'docs.new',
      'runplane.event.id': eventId,
      'runplane.intake.runs': 2,
      'runplane.correlation_id': 'c-2',
    },
  });
  expect(intake.parentSpanId ?? '').toBe('');
  for (const span of receiver.spans) expect(span.traceId).toBe(intake.traceId);
  for (const attempt of named('attempt')) expect(attempt.parentSpanId).toBe(intake.spanId);
});

describe('the span of an attempt', () => {
  test('that failed says so, and that its task is tried again; the last one leaves a dead letter', async () => {
    const server = await start();
    await servers.define(server, 'a');
    await servers.launch(server, 'a');
    for (const _ of [1, 2]) {
      const failed = 'status: FAILED error: { code: "BOOM" message: "secret" }';
      await servers.report(server, await servers.claim(server, 'a'), failed);
    }
    await expect.poll(() => named('attempt').length, { timeout: 10_000 }).toBe(2);
    const [first, second] = named('attempt').sort((a, b) => a.startedAt - b.startedAt);
    expect(first).toMatchObject({
      status: { code: 2, message: 'FAILED' },
      attributes: {
        'error.type': 'BOOM',
        'runplane.attempt.number': 1,
        'runplane.task.retried': true,
        'runplane.task.dead_lettered': false,
      },
    });
    expect(second).toMatchObject({
      status: { code: 2, message: 'FAILED, DEAD_LETTERED' },
      attributes: {
        'runplane.attempt.number': 2,
        'runplane.task.retried': false,
        'runplane.task.dead_lettered': true,
      },
    });
    // What an error says is payload.
    expect(JSON.stringify(receiver.spans)).not.toContain('secret');
  });

  test.each([
    ['LOST', 'expires_at'],
    ['TIMED_OUT', 'timeout_at'],
  ])('that is %s ends with that status, once, by whichever server is left', async (status, column) => {
    const first = await start({ RUNPLANE_ROLES: 'api' });
    await servers.define(first, 'a', 'timeoutSeconds: 3600');
    await servers.launch(first, 'a', '', caller);
    const assignment = await servers.claim(first, 'a');
    await only('claim');
    await first.process.end('SIGKILL');
    const left = await Promise.all([start(), start()]);
    await servers.database.db.query({
      text: `update runplane.leases set lease_seconds = 0, ${column} = runplane.clock() - interval '1 second'`,
    });
    const again = await servers.claim(left[0], 'a');
    expect(again.number).toBe(2);
    await servers.report(left[1], again, 'status: COMPLETED');
    await expect.poll(() => named('attempt').length, { timeout: 10_000 }).toBe(2);
    // Both have told everything.
    for (const server of left) await server.process.end('SIGTERM');
    const spans = named('attempt').filter(({ attributes }) => attributes['runplane.attempt.number'] === 1);
    expect(spans).toHaveLength(1);
    expect(spans[0]).toMatchObject({
      traceId: callerTrace,
      spanId: assignment.traceparent.split('-')[2],
      status: { code: 2, message: status },
      attributes: { 'runplane.attempt.status': status, 'runplane.task.retried': true },
    });
  });
});

test('what a late result cost is on its own span, and the newer attempt that it ends has one', async () => {
  const server = await start();
  await servers.define(server, 'a');
  await servers.launch(server, 'a');
  const lost = await servers.claim(server, 'a');
  await servers.database.db.query({
    text: `update runplane.leases set lease_seconds = 0, expires_at = runplane.clock() - interval '1 second'`,
  });
  const newer = await servers.claim(server, 'a');
  const done = 'status: COMPLETED usage: [{ model: "m" inputTokens: 3 }]';
  expect(await servers.report(server, lost, done)).toBe('APPLIED');
  expect(await servers.report(server, newer, 'status: COMPLETED')).toBe('SUPERSEDED');
  await server.process.end('SIGTERM');
  const statuses = named('attempt').map(({ attributes }) => [
    attributes['runplane.attempt.number'],
    attributes['runplane.attempt.status'],
    attributes['gen_ai.usage.input_tokens'],
  ]);
  expect(statuses.sort(([a], [b]) => Number(a) - Number(b))).toEqual([
    [1, 'LOST', undefined],
    [2, 'CANCELLED', undefined],
  ]);
  const applied = named('result').find(
    ({ attributes }) =>
      attributes['runplane.result.answer'] === 'APPLIED' && attributes['runplane.result.by'] === 'REPORT',
  );
  expect(applied?.attributes).toMatchObject({ 'gen_ai.usage.input_tokens': 3, 'gen_ai.response.model': 'm' });
});

test('nothing of a trace that is not sampled is recorded, and its worker is told so', async () => {
  const server = await start();
  await servers.define(server, 'a');
  await servers.launch(server, 'a', '', unsampled);
  const assignment = await servers.claim(server, 'a');
  expect(assignment.traceparent).toMatch(new RegExp(`^00-${callerTrace}-[0-9a-f]{16}-00$`));
  await servers.report(server, assignment, 'status: COMPLETED');
  await server.process.end('SIGTERM');
  expect(receiver.spans).toEqual([]);
});

test('the sampler decides about traces that begin here', async () => {
  const server = await start({ OTEL_TRACES_SAMPLER: 'parentbased_always_off' });
  await servers.define(server, 'a');
  await servers.launch(server, 'a');
  const own = await servers.claim(server, 'a');
  expect(own.traceparent).toMatch(/-00$/);
  await servers.launch(server, 'a', '', caller);
  const given = await servers.claim(server, 'a');
  expect(given.traceparent).toMatch(/-01$/);
  for (const assignment of [own, given]) await servers.report(server, assignment, 'status: COMPLETED');
  await server.process.end('SIGTERM');
  expect(new Set(receiver.spans.map(({ traceId }) => traceId))).toEqual(new Set([callerTrace]));
  expect(named('attempt')).toHaveLength(1);
});

test('spans go by protobuf, too, with headers, and what is there is sent before a server is gone', async () => {
  const server = await start({
    OTEL_EXPORTER_OTLP_PROTOCOL: '',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20secret-1',
    OTEL_BSP_SCHEDULE_DELAY: '60000',
  });
  await servers.define(server, 'a');
  await servers.launch(server, 'a', 'correlationId: "by-protobuf"');
  await server.process.end('SIGTERM');
  expect(receiver.requests).toMatchObject([
    { path: '/v1/traces', type: 'application/x-protobuf', headers: { authorization: 'Bearer secret-1' } },
  ]);
  expect(receiver.requests[0]?.body.includes('by-protobuf')).toBe(true);
  expect(server.process.output()).not.toContain('secret-1');
});

test('a receiver that does not answer stops nobody', async () => {
  const server = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
  await servers.define(server, 'a');
  await servers.launch(server, 'a');
  expect(await servers.report(server, await servers.claim(server, 'a'), 'status: COMPLETED')).toBe('APPLIED');
  expect(await server.process.end('SIGTERM')).toBe(0);
});

test.each([
  ['by default', { OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
  ['when the SDK is disabled', { OTEL_SDK_DISABLED: 'true' }],
  ['when no exporter is wanted', { OTEL_TRACES_EXPORTER: 'none' }],
])('there are no spans %s', async (_, env) => {
  const server = await start(env);
  await servers.define(server, 'a');
  await servers.launch(server, 'a', '', caller);
  const assignment = await servers.claim(server, 'a');
  expect(assignment.traceparent).toBe(caller.traceparent);
  await servers.report(server, assignment, 'status: COMPLETED');
  await server.process.end('SIGTERM');
  expect(receiver.requests).toEqual([]);
});
