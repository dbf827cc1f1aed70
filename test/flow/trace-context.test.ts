import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import { fromPublicId, type IdPrefix, toPublicId } from '../../src/domain/ids.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
let inline: string[] = [];
beforeEach(async () => {
  inline = [];
  server = await startTestServer({
    scheduler: true,
    handlers: {
      note: ({ traceparent }) => {
        inline.push(traceparent);
        return {};
      },
    },
  });
  const { plane } = server;
  await plane.agent('a');
  await plane.agent('inline', { dispatch: { inline: { handler: 'note' } } });
  await plane.job('one', ['a']);
  await plane.job('inline', ['inline']);
  await plane.services.configuration.saveRoute({ name: 'docs', topic: 'docs.*', job: 'one' }, actor);
});
afterEach(() => server.stop());

const actor = { name: 'test', requestId: null };
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const given = `00-${traceId}-00f067aa0ba902b7-01`;
const unsampled = `00-${traceId}-00f067aa0ba902b7-00`;

interface Answer {
  runId: string;
  runIds: string[];
  eventId: string;
  replayed: boolean;
}

async function ask(field: string, traceparent?: string): Promise<Answer> {
  const response = await fetch(server.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(traceparent === undefined ? {} : { traceparent }) },
    body: JSON.stringify({ query: `mutation { answer: ${field} }` }),
  });
  const { data, errors } = (await response.json()) as { data: { answer: Answer }; errors?: unknown };
  expect(errors).toBeUndefined();
  return data.answer;
}

const launch = (traceparent?: string, more = ''): Promise<Answer> =>
  ask(`launchRun(input: { job: "one" ${more} }) { ... on LaunchRunSuccess { runId replayed } }`, traceparent);
const publish = (traceparent?: string): Promise<Answer> =>
  ask(
    'publishEvent(input: { topic: "docs.new", payload: {} }) { ... on PublishEventSuccess { eventId runIds } }',
    traceparent,
  );
const hex = (prefix: IdPrefix, id: string): string => (fromPublicId(prefix, id) ?? '').replaceAll('-', '');

/** What the next worker is given to continue; it completes its task, and tells of its trace or does not. */
async function work(report: { traceId?: string } = {}): Promise<Assignment> {
  const [assignment] = await server.plane.claim(['a'], 1);
  if (!assignment) throw new Error('nothing to claim');
  await server.plane.report(assignment, { status: 'COMPLETED', ...report });
  return assignment;
}

async function traceIdOf({ attemptId }: Assignment): Promise<string | null> {
  const { data } = await server.post('query ($id: ID!) { attempt(id: $id) { traceId } }', {
    id: toPublicId('att', attemptId),
  });
  return (data as unknown as { attempt: { traceId: string | null } }).attempt.traceId;
}

test('a launch hands the traceparent of its request to the worker, and the attempt shows its trace', async () => {
  await launch(given);
  const assignment = await work();
  expect(assignment.traceparent).toBe(given);
  expect(await traceIdOf(assignment)).toBe(traceId);
});

test.each(['x', '0'.repeat(32), traceId.toUpperCase(), `${traceId}0`, ''])(
  'a result with %j for a trace id is refused, and its attempt goes on',
  async (wrong) => {
    await launch(given);
    const [assignment] = await server.plane.claim(['a'], 1);
    if (!assignment) throw new Error('nothing to claim');
    expect(await server.plane.report(assignment, { status: 'COMPLETED', traceId: wrong })).toMatchObject({
      kind: 'InvalidInput',
      field: 'traceId',
    });
    expect(await server.plane.report(assignment, { status: 'COMPLETED' })).toMatchObject({
      outcome: 'APPLIED',
    });
  },
);

test('what was not sampled stays so', async () => {
  await launch(unsampled);
  expect((await work()).traceparent).toBe(unsampled);
});

test('a handler in the server gets it, too', async () => {
  const { runId } = await ask(
    'launchRun(input: { job: "inline" }) { ... on LaunchRunSuccess { runId } }',
    given,
  );
  await expect
    .poll(() => server.plane.run(fromPublicId('run', runId) ?? ''))
    .toMatchObject({ status: 'COMPLETED' });
  expect(inline).toEqual([given]);
});

test('an event hands it to all that it launches, also to what is launched when it is replayed', async () => {
  const { eventId } = await publish(given);
  await server.plane.services.configuration.saveRoute({ name: 'later', topic: 'docs.*', job: 'one' }, actor);
  const { runIds } = await ask(`replayEvent(id: "${eventId}") { ... on PublishEventSuccess { runIds } }`);
  expect(runIds).toHaveLength(2);
  expect([(await work()).traceparent, (await work()).traceparent]).toEqual([given, given]);
});

test('a rerun continues the trace of whoever asks for it, else that of the old run', async () => {
  const { runId } = await launch(given);
  await work();
  const again = (header?: string) =>
    ask(
      `rerun(input: { runId: "${runId}", onlyFailed: false }) { ... on LaunchRunSuccess { runId } }`,
      header,
    );
  await again();
  expect((await work()).traceparent).toBe(given);
  const other = '00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01';
  await again(other);
  expect((await work()).traceparent).toBe(other);
});

test('a run that is debounced is in the trace of its newest launch', async () => {
  const debounce = 'debounce: { key: "k", seconds: 60 }';
  const first = await launch(given, debounce);
  expect(await launch(unsampled, debounce)).toMatchObject({ runId: first.runId });
  await server.plane.rows(`select runplane.move_due_tasks(1)`);
  const [run] = await server.plane.rows<{ context: string }>(
    `select encode(trace_context, 'hex') as context from runplane.runs`,
  );
  expect(run?.context).toBe(`${traceId}00f067aa0ba902b700`);
});

test('the trace is no part of what an idempotency key stands for', async () => {
  const key = 'idempotencyKey: "k"';
  const first = await launch(given, key);
  expect(await launch(unsampled, key)).toMatchObject({ runId: first.runId, replayed: true });
  expect((await work()).traceparent).toBe(given);
});

test('without a traceparent, or with a wrong one, the trace is that of the run, or of the event; nothing is stored', async () => {
  for (const header of [undefined, 'nonsense', `${given}, ${given}`]) {
    const { runId } = await launch(header);
    const assignment = await work();
    expect(assignment.traceparent).toMatch(new RegExp(`^00-${hex('run', runId)}-[0-9a-f]{16}-01$`));
    expect(await traceIdOf(assignment)).toBe(hex('run', runId));
  }
  const { eventId } = await publish();
  const assignment = await work();
  expect(assignment.traceparent.split('-')[1]).toBe(hex('evt', eventId));
  expect(await traceIdOf(assignment)).toBe(hex('evt', eventId));
  expect(await server.plane.rows('select id from runplane.runs where trace_context is not null')).toEqual([]);
});

test('two attempts of a task are two spans of one trace, and a worker that has a trace of its own tells of it', async () => {
  await launch();
  const [first] = await server.plane.claim(['a'], 1);
  if (!first) throw new Error('nothing to claim');
  await server.plane.report(first, { status: 'RELEASED' });
  const own = 'c'.repeat(32);
  const second = await work({ traceId: own });
  const [a, b] = [first, second].map(({ traceparent }) => traceparent.split('-'));
  expect(a?.[1]).toBe(b?.[1]);
  expect(a?.[2]).not.toBe(b?.[2]);
  expect(await traceIdOf(second)).toBe(own);
});
