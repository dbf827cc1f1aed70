import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { createClient } from 'graphql-sse';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openEventStream, type StreamEvent } from '../support/event-stream.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeEach(async () => {
  server = await startTestServer();
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
});
afterEach(() => server.stop());

const open = (query: string, headers: Record<string, string> = {}) =>
  openEventStream(server.url, query, headers);

const watch =
  'subscription { taskStatusChanged { cursor caughtUp changes { sequence toStatus task { id status } } } }';
const dataOf = (event: StreamEvent | null) =>
  (
    JSON.parse(event?.data ?? '{}') as {
      data: { taskStatusChanged: { cursor: string; changes: { toStatus: string }[] } };
    }
  ).data.taskStatusChanged;

test('each message carries its cursor as the event id, and a client resumes with it', async () => {
  const stream = await open(watch);
  expect(stream.response.headers.get('content-type')).toMatch('text/event-stream');
  expect(stream.response.headers.get('x-accel-buffering')).toBe('no');
  expect(stream.response.headers.get('cache-control')).toBe('no-cache, no-transform');
  const first = await stream.next();
  expect(first?.id).toBe(dataOf(first).cursor);
  await server.plane.launch('one');
  let message = await stream.next();
  expect(dataOf(message).changes).toMatchObject([{ toStatus: 'ENQUEUED', task: { status: 'ENQUEUED' } }]);
  stream.leave();

  await server.plane.claim(['a']);
  const resumed = await open(watch, { 'last-event-id': message?.id ?? '' });
  const statuses: string[] = [];
  while (!statuses.includes('PROCESSING')) {
    message = await resumed.next();
    statuses.push(...dataOf(message).changes.map((change) => change.toStatus));
  }
  resumed.leave();
});

test('an error of a stream is a message with errors, then the end', async () => {
  const stream = await open('subscription { taskStatusChanged(after: "nonsense") { cursor } }');
  expect(JSON.parse((await stream.next())?.data ?? '')).toMatchObject({
    errors: [{ extensions: { code: 'INVALID_CURSOR' } }],
  });
  expect(await stream.next()).toMatchObject({ event: 'complete' });
  expect(await stream.next()).toBeNull();
});

test('a query may be asked for as a stream too', async () => {
  const stream = await open('{ __typename }');
  expect(JSON.parse((await stream.next())?.data ?? '')).toEqual({ data: { __typename: 'Query' } });
  expect(await stream.next()).toMatchObject({ event: 'complete' });
});

test('a stopping server cuts its streams, which are not complete, so that clients resume them', async () => {
  const stream = await open(watch);
  await stream.next();
  const stopped = server.http.stop();
  expect(await stream.next()).toBeNull();
  await stopped;
});

test('a slow reader is sent no more than it reads, and the server answers others meanwhile', async () => {
  let produced = 0;
  const flooding = new GraphQLSchema({
    query: new GraphQLObjectType({
      name: 'Query',
      fields: { ok: { type: GraphQLString, resolve: () => 'yes' } },
    }),
    subscription: new GraphQLObjectType({
      name: 'Subscription',
      fields: {
        flood: {
          type: GraphQLString,
          resolve: () => 'x'.repeat(64 * 1024),
          subscribe: async function* () {
            for (;;) {
              produced++;
              yield {};
            }
          },
        },
      },
    }),
  });
  const other = await startTestServer({ schema: flooding });
  const flood = await openEventStream(other.url, 'subscription { flood }');
  /** Unchanged while others were answered, several times. */
  const standsStill = async (): Promise<boolean> => {
    const before = produced;
    for (let i = 0; i < 10; i++) expect(await other.post('{ ok }')).toEqual({ data: { ok: 'yes' } });
    return produced > 0 && produced === before;
  };
  await expect.poll(standsStill, { timeout: 20_000 }).toBe(true);
  const still = produced;
  while (produced === still) expect((await flood.next())?.event).toBe('next');
  flood.leave();
  await other.stop();
});

test('the client of graphql-sse follows a run to its end', async () => {
  const client = createClient({ url: server.url, fetchFn: fetch, abortControllerImpl: AbortController });
  const { data } = await server.post(
    'mutation { launchRun(input: { job: "one" }) { ... on LaunchRunSuccess { runId cursor } } }',
  );
  const { runId, cursor } = (data as unknown as { launchRun: { runId: string; cursor: string } }).launchRun;
  const statuses: string[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    client.subscribe<{ runStatusChanged: { changes: { toStatus: string }[] } }>(
      {
        query: `subscription($id: ID!, $after: Cursor) { runStatusChanged(filter: { ids: [$id] }, after: $after) { cursor changes { toStatus } } }`,
        variables: { id: runId, after: cursor },
      },
      {
        next: (message) =>
          void statuses.push(
            ...(message.data?.runStatusChanged.changes.map((change) => change.toStatus) ?? []),
          ),
        error: reject,
        complete: resolve,
      },
    );
  });
  const [task] = await server.plane.claim(['a']);
  await server.plane.report(task as never, { status: 'COMPLETED' });
  await ended;
  expect(statuses).toEqual(['QUEUED', 'RUNNING', 'COMPLETED']);
  client.dispose();
});
