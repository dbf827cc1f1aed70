import { afterEach, beforeEach, expect, test } from 'vitest';
import { fromPublicId, type IdPrefix } from '../../src/domain/ids.ts';
import { Broker } from '../support/broker.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { type ServerProcess, Servers } from '../telemetry/server.ts';

let broker: Broker;
let servers: Servers;
beforeEach(async () => {
  broker = await Broker.start();
  await broker.stream();
  servers = await Servers.create();
});
afterEach(async () => {
  await servers.stop();
  await broker.stop();
});

/** Messages on pipeline.work are worked off by the agent a. */
async function start(env: Record<string, string>): Promise<ServerProcess> {
  const server = await servers.start({ NATS_URL: broker.server.url, NATS_ACK_WAIT_SECONDS: '2', ...env });
  await servers.define(server, 'a');
  await server.ask(`saveRoute(input: { name: "r" topic: "pipeline.work" job: "a" }) { __typename }`);
  return server;
}

async function workOff(server: ServerProcess) {
  const assignment = await servers.claim(server, 'a');
  await servers.report(server, assignment, 'status: COMPLETED');
  return assignment;
}

const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
const span = '00f067aa0ba902b7';
const producer = { traceparent: `00-${trace}-${span}-01` };
const hex = (prefix: IdPrefix, id: string): string =>
  (fromPublicId(prefix, id) ?? '').replaceAll('-', '').slice(16);

test('work that a message asks for is in the trace of its producer, from the message to the worker and back', async () => {
  const receiver: OtlpReceiver = await startOtlpReceiver();
  const server = await start({
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  });
  const message = { idempotency_key: 'k', correlation_id: 'c-1' };
  await broker.publish('pipeline.work', message, producer);
  const assignment = await workOff(server);
  await broker.allAcknowledged();
  const events = await servers.database.db.query<{ id: string }>({ text: 'select id from runplane.events' });
  // It is published again, in another trace: the work is in the first one.
  const again = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  await broker.publish('pipeline.work', message, { traceparent: again });
  await broker.allAcknowledged();
  await server.process.end('SIGTERM');
  await receiver.close();

  const named = (name: string): ReceivedSpan[] => receiver.spans.filter((each) => each.name === name);
  const [intake, repeated] = named('intake').sort((a, b) => a.startedAt - b.startedAt);
  expect(intake).toMatchObject({
    traceId: trace,
    parentSpanId: span,
    spanId: events.rows[0]?.id.replaceAll('-', '').slice(16),
    attributes: {
      'runplane.intake.kind': 'EVENT',
      'runplane.topic': 'pipeline.work',
      'runplane.correlation_id': 'c-1',
      'runplane.intake.runs': 1,
      'runplane.intake.replayed': false,
    },
  });
  expect(repeated).toMatchObject({
    traceId: 'a'.repeat(32),
    parentSpanId: 'b'.repeat(16),
    attributes: { 'runplane.intake.replayed': true },
  });
  const attemptSpan = hex('att', assignment.attemptId);
  expect(assignment.traceparent).toBe(`00-${trace}-${attemptSpan}-01`);
  const [attempt, ...others] = named('attempt');
  expect(others).toEqual([]);
  expect(attempt).toMatchObject({ spanId: attemptSpan, parentSpanId: intake?.spanId });
  expect(named('claim')).toMatchObject([{ parentSpanId: intake?.spanId }]);
  for (const name of ['dispatch', 'result'])
    expect(named(name), name).toMatchObject([{ parentSpanId: attemptSpan }]);
  for (const each of receiver.spans) if (each !== repeated) expect(each.traceId).toBe(trace);
});

test('without spans a message hands its traceparent to the worker as it came', async () => {
  const server = await start({});
  await broker.publish('pipeline.work', {}, producer);
  expect((await workOff(server)).traceparent).toBe(producer.traceparent);
});

test('every line that tells of a message has its correlation id, whether it is taken in, refused or failed', async () => {
  const { db } = servers.database;
  await db.query({
    text: `create function runplane.fail() returns trigger language plpgsql as $$
      begin if new.payload ->> 'fails' = 'yes' then raise exception 'it fails'; end if; return new; end $$`,
  });
  await db.query({
    text: 'create trigger fail before insert on runplane.events for each row execute function runplane.fail()',
  });
  const server = await start({ LOG_LEVEL: 'debug', NATS_MAX_DELIVER: '2' });
  const published: Record<string, number> = {};
  const publish = async (correlation: string, more: object): Promise<void> => {
    const message = { correlation_id: correlation, secret: 'hunter2', ...more };
    published[correlation] = await broker.publish('pipeline.work', message);
  };
  await publish('taken', { idempotency_key: 'k' });
  await publish('invalid', { idempotency_key: 5 });
  await publish('conflict', { idempotency_key: 'k', n: 2 });
  await publish('failing', { fails: 'yes' });
  const noJson = await broker.publish('pipeline.work', 'hunter2');
  await workOff(server);
  await broker.allAcknowledged();
  await server.process.end('SIGTERM');

  const { rows } = await db.query<{ id: string; correlation: string; code: string | null }>({
    text: `select 'evt_' || replace(id::text, '-', '') as id, correlation_id as correlation, rejection ->> 'code' as code from runplane.events`,
  });
  expect(rows).toHaveLength(5);
  const lines = (correlation: string) =>
    server.lines().filter(({ correlationId }) => correlationId === correlation);
  expect(lines('taken').map(({ stage }) => stage)).toEqual([
    'intake',
    'claim',
    'dispatch',
    'attempt',
    'result',
  ]);
  expect(lines('taken')[0]).toMatchObject({ msg: 'taken in', topic: 'pipeline.work' });
  const own = rows.find(({ code }) => code === 'NOT_JSON')?.correlation ?? '';
  expect(own).toMatch(/^evt_/);
  for (const [correlation, code, sequence] of [
    ['invalid', 'INVALID_ENVELOPE', published.invalid],
    ['conflict', 'CONFLICT', published.conflict],
    ['failing', 'FAILED', published.failing],
    [own, 'NOT_JSON', noJson],
  ])
    expect(lines(String(correlation))).toContainEqual(
      expect.objectContaining({
        level: 40,
        stage: 'intake',
        stream: 'PIPELINE',
        topic: 'pipeline.work',
        sequence,
        code,
      }),
    );
  const failures = lines('failing').filter(({ level }) => level === 50);
  expect(failures).toHaveLength(2);
  for (const line of server.lines().filter(({ stage }) => stage === 'intake'))
    expect(line.correlationId, JSON.stringify(line)).toEqual(expect.any(String));
  expect(server.process.output()).not.toContain('hunter2');
});
