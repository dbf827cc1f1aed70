import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { createClient } from 'graphql-sse';
import { afterEach, describe, expect, test } from 'vitest';
import { startTestServer, type TestServer, type TestServerOptions } from '../support/server.ts';
import { ask, codeOf, StreamByHand } from '../support/stream-by-hand.ts';

let server: TestServer;
let stream: StreamByHand;
const start = async (options: TestServerOptions = {}): Promise<void> => {
  server = await startTestServer(options);
  stream = new StreamByHand(`${server.http.url}/graphql/stream`);
};
afterEach(() => server.stop());

/** The real client, whose connections can be broken. */
function createBreakableClient(singleConnection: boolean) {
  let broken = new AbortController();
  const client = createClient({
    url: singleConnection ? stream.url : server.url,
    singleConnection,
    retry: () => Promise.resolve(),
    fetchFn: (target: string, init: RequestInit) =>
      fetch(target, {
        ...init,
        signal: AbortSignal.any([broken.signal, ...(init.signal ? [init.signal] : [])]),
      }),
    abortControllerImpl: AbortController,
  });
  return {
    client,
    breakConnections: () => {
      broken.abort();
      broken = new AbortController();
    },
  };
}

const watchRuns = 'subscription { runStatusChanged { changes { runId toStatus } } }';
type RunChanges = { runStatusChanged: { changes: { runId: string; toStatus: string }[] } };

describe.each([
  ['with a single connection', true],
  ['with a connection for each operation', false],
])('the client of graphql-sse %s', (_, singleConnection) => {
  test('asks, and follows several streams at once', async () => {
    await start();
    await server.plane.agent('a');
    await server.plane.job('one', ['a']);
    const { client } = createBreakableClient(singleConnection);
    const runs = client.iterate<RunChanges>({ query: watchRuns });
    const tasks = client.iterate({ query: 'subscription { taskStatusChanged { changes { toStatus } } }' });
    await runs.next();
    await tasks.next();
    for await (const answer of client.iterate({ query: '{ viewer { name } }' })) {
      expect(answer).toEqual({ data: { viewer: { name: 'local' } } });
    }
    await server.plane.launch('one');
    const run = await runs.next();
    const task = await tasks.next();
    expect(run.value?.data?.runStatusChanged.changes).toMatchObject([{ toStatus: 'QUEUED' }]);
    expect(task.value).toMatchObject({
      data: { taskStatusChanged: { changes: [{ toStatus: 'ENQUEUED' }] } },
    });
    await runs.return?.();
    await tasks.return?.();
    client.dispose();
  });

  test('comes back after its connection broke, and misses nothing', async () => {
    await start();
    await server.plane.agent('a');
    await server.plane.job('one', ['a']);
    const { data } = await server.post('{ changeLogCursor }');
    const { client, breakConnections } = createBreakableClient(singleConnection);
    const changes = client.iterate<RunChanges & { runStatusChanged: { cursor: string } }>({
      query:
        'subscription($after: Cursor) { runStatusChanged(after: $after) { cursor changes { runId toStatus } } }',
      variables: { after: data?.changeLogCursor },
    });
    const seen = new Set<string>();
    const until = async (count: number): Promise<void> => {
      while (seen.size < count) {
        const { value } = await changes.next();
        for (const { runId } of value?.data?.runStatusChanged.changes ?? []) seen.add(runId);
      }
    };
    await server.plane.launch('one');
    await until(1);
    breakConnections();
    await server.plane.launch('one');
    await until(2);
    await changes.return?.();
    client.dispose();
  });
});

test('an operation that is wrong is told so, and leaves nothing behind', async () => {
  await start();
  const { token } = await stream.reserve();
  const invalid = await stream.send(token, ask('1', '{ nothing }'));
  expect([invalid.status, await codeOf(invalid)]).toEqual([400, 'GRAPHQL_VALIDATION_FAILED']);
  const deep = await stream.send(
    token,
    ask('1', `{ run(id: "run_x") { ${'parentRun { '.repeat(30)}id${' }'.repeat(32)}`),
  );
  expect([deep.status, await codeOf(deep)]).toEqual([400, 'QUERY_TOO_DEEP']);
  const noVariable = await stream.send(token, ask('1', 'query($id: ID!) { run(id: $id) { id } }'));
  expect([noVariable.status, await codeOf(noVariable)]).toEqual([400, 'BAD_USER_INPUT']);
  // Nothing of them is left: the id is free.
  expect((await stream.send(token, ask('1'))).status).toBe(202);
});

test('an operation whose id is none, or is taken, is not executed', async () => {
  await start();
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
  const { token } = await stream.reserve();
  expect((await stream.send(token, ask('1', watchRuns))).status).toBe(202);
  const kept = () => server.plane.services.kept();
  await expect.poll(kept).toMatchObject({ subscribers: 1 });
  const before = kept();
  const refused = async (operationId: unknown): Promise<[number, unknown]> => {
    const extensions = { operationId };
    await stream.send(token, {
      query: 'subscription { workAvailable(agents: ["a"]) { agents } }',
      extensions,
    });
    const launch = 'mutation { launchRun(input: { job: "one" }) { __typename } }';
    const response = await stream.send(token, { query: launch, extensions });
    return [response.status, await codeOf(response)];
  };
  expect([await refused(undefined), await refused({ toString: null }), await refused('1')]).toEqual([
    [400, 'BAD_REQUEST'],
    [400, 'BAD_REQUEST'],
    [409, 'STREAM_CONFLICT'],
  ]);
  expect(await server.plane.rows('select id from runplane.runs')).toEqual([]);
  expect(kept()).toEqual(before);
});

describe('an iterator that throws', () => {
  const failing: GraphQLSchema = new GraphQLSchema({
    query: new GraphQLObjectType({
      name: 'Query',
      fields: { ok: { type: GraphQLString, resolve: () => 'yes' } },
    }),
    subscription: new GraphQLObjectType({
      name: 'Subscription',
      fields: Object.fromEntries(
        (['next', 'return', 'both'] as const).map((where) => [
          where,
          {
            type: GraphQLString,
            resolve: () => 'value',
            subscribe: () => {
              let first = true;
              return {
                [Symbol.asyncIterator]() {
                  return this;
                },
                next: () => {
                  if (where === 'return' || first) {
                    first = false;
                    return where === 'return'
                      ? new Promise(() => {})
                      : Promise.resolve({ done: false, value: {} });
                  }
                  return Promise.reject(new Error('secret of the source'));
                },
                return: () =>
                  where === 'next'
                    ? Promise.resolve({ done: true, value: undefined })
                    : Promise.reject(new Error('secret of the return')),
              };
            },
          },
        ]),
      ),
    }),
  });

  test.each([
    ['a single connection', true],
    ['a connection of its own', false],
  ])('ends its operation on %s, and nothing else', async (_, singleConnection) => {
    const logged: object[] = [];
    await start({ schema: failing, log: { error: (fields) => void logged.push(fields) } });
    const client = createClient({
      url: stream.url,
      singleConnection,
      fetchFn: fetch,
      abortControllerImpl: AbortController,
    });
    for (const where of ['next', 'both']) {
      const results: unknown[] = [];
      for await (const result of client.iterate({ query: `subscription { ${where} }` })) results.push(result);
      expect(results).toMatchObject([
        { data: { [where]: 'value' } },
        { errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR', requestId: expect.any(String) } }] },
      ]);
      expect(JSON.stringify(results)).not.toContain('secret');
      const { requestId } =
        (results[1] as { errors: { extensions: { requestId: string } }[] }).errors[0]?.extensions ?? {};
      expect(logged).toContainEqual(
        expect.objectContaining({ requestId, error: expect.stringContaining('secret') }),
      );
    }
    // One that waits for ever and cannot be told to stop is left all the same.
    const waiting = client.iterate({ query: 'subscription { return }' });
    const next = waiting.next();
    await waiting.return?.();
    await next;
    for await (const result of client.iterate({ query: '{ ok }' }))
      expect(result).toEqual({ data: { ok: 'yes' } });
    client.dispose();
  });
});
