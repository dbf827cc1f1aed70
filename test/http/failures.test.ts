import { once } from 'node:events';
import { connect } from 'node:net';
import { GraphQLInt, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { knownTokens } from '../support/known-tokens.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { StreamByHand } from '../support/stream-by-hand.ts';

const secret = 'what-a-client-sent';
const logged: object[] = [];

/** Fails in a way that nobody expected, as a bug or a broken connection would. */
const failing = {
  type: GraphQLString,
  args: { value: { type: GraphQLString } },
  resolve: () => {
    throw new Error('the cause: select secret_column from nowhere');
  },
};
/** Failures whose own message quotes what a client sent. */
const quoting: Record<string, { fail: (value: string) => unknown; told: RegExp }> = {
  readAsJson: { fail: (value) => JSON.parse(value), told: /^SyntaxError\n/ },
  takenForAnObject: { fail: (value) => 'x' in (value as unknown as object), told: /^TypeError\n/ },
  takenForAnId: {
    fail: (value) => server.plane.database.db.query({ text: 'select $1::uuid', values: [value] }),
    told: /^error 22P02: routine string_to_uuid\n/,
  },
  takenForANumber: {
    fail: (value) => server.plane.database.db.query({ text: 'select $1::text::numeric', values: [value] }),
    told: /^error 22P02: routine \w+\n/,
  },
  storedTwice: {
    fail: (value) =>
      server.plane.database.db.query({
        text: 'insert into runplane.queues (id, name, pool_id) select $2, $1, id from runplane.pools limit 1',
        values: [value, null],
      }),
    told: /^error 23502: null value in column "id" .*: table queues, column id, routine ReportNotNullViolationError\n/,
  },
  brokenInvariant: {
    fail: () => server.plane.database.db.query({ text: "select runplane.must_be_equal(1, 2, 'leases')" }),
    told: /^error P0001: 1 leases instead of 2: routine exec_stmt_raise\n/,
  },
  causing: {
    fail: (value) => {
      try {
        return JSON.parse(value);
      } catch (cause) {
        throw new Error('what was read is broken', { cause });
      }
    },
    told: /^Error: what was read is broken\n.*caused by SyntaxError\n/s,
  },
  thrownItself: {
    fail: (value) => {
      // oxlint-disable-next-line typescript/only-throw-error -- what somebody else's code may do
      throw value;
    },
    told: /^NonErrorThrown\n/,
  },
  answeredAsNumber: { fail: (value) => value, told: /^GraphQLError\n/ },
};
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      failing,
      ...Object.fromEntries(
        Object.entries(quoting).map(([name, { fail }]) => [
          name,
          {
            ...failing,
            type: GraphQLInt,
            resolve: (_: unknown, { value }: { value: string }) => fail(value),
          },
        ]),
      ),
    },
  }),
  subscription: new GraphQLObjectType({
    name: 'Subscription',
    fields: {
      failing: { ...failing, subscribe: failing.resolve },
      failingLater: {
        ...failing,
        subscribe: async function* () {
          yield {};
        },
      },
    },
  }),
});

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ schema, log: { error: (fields) => void logged.push(fields) } });
});
beforeEach(() => void logged.splice(0));
afterAll(() => server.stop());

type Send = (query: string) => Promise<string>;
const variables = { value: secret };

const post =
  (accept: string): Send =>
  async (query) => {
    const response = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept },
      body: JSON.stringify({ query, variables }),
    });
    return response.text();
  };
const overOneConnection: Send = async (query) => {
  const stream = new StreamByHand(`${server.http.url}/graphql/stream`);
  const { token } = await stream.reserve();
  const response = await stream.send(token, { query, variables, extensions: { operationId: '1' } });
  if (response.status !== 202) return response.text();
  const { readUntil, leave } = await stream.connect(token);
  const text = await readUntil('event: complete');
  leave();
  return text;
};

describe.each([
  ['as JSON', post('application/json')],
  ['as a stream', post('text/event-stream')],
  ['over a single connection', overOneConnection],
])('asked %s,', (how, send) => {
  const streamed = [
    'subscription Q($value: String) { failing(value: $value) }',
    'subscription Q($value: String) { failingLater(value: $value) }',
  ];

  test.each(['query Q($value: String) { failing(value: $value) }', ...(how === 'as JSON' ? [] : streamed)])(
    'what fails has a request id, under which the log has the cause: %s',
    async (query) => {
      const text = await send(query);
      const requestId = /"requestId":"([\w-]{36})"/.exec(text)?.[1];
      expect(requestId).toBeDefined();
      expect(text).toContain('INTERNAL_SERVER_ERROR');
      expect(text).not.toContain('secret_column');
      expect(logged).toEqual([
        expect.objectContaining({ requestId, error: expect.stringContaining('secret_column') }),
      ]);
      expect(JSON.stringify(logged)).not.toContain(secret);
    },
  );

  test.each([
    ['is no GraphQL', 'query Q($value: String) {'],
    ['does not fit the schema', 'query Q($value: String) { nothing(value: $value) }'],
    ['has wrong variables', 'query Q($value: Int) { __typename @skip(if: $value) }'],
    ['has variables of a wrong type', 'query Q($value: Boolean!) { __typename @skip(if: $value) }'],
    ['is too deep', `query Q($value: String) ${'{ a '.repeat(40)}${'}'.repeat(40)}`],
  ])('what %s is refused without a word in the log', async (_, query) => {
    expect(await send(query)).toContain('errors');
    expect(logged).toEqual([]);
  });
});

test.each(Object.entries(quoting))(
  'the log has the kind and the place of what fails, and nothing that was sent: %s',
  async (name, { told }) => {
    const text = await post('application/json')(`query Q($value: String) { ${name}(value: $value) }`);
    expect(text).toContain('INTERNAL_SERVER_ERROR');
    expect(text).not.toContain(secret);
    expect(logged).toEqual([
      expect.objectContaining({ code: 'INTERNAL_SERVER_ERROR', error: expect.stringMatching(told) }),
    ]);
    expect(JSON.stringify(logged)).not.toMatch(/what-a|t-sent/);
  },
);

test('a request that fails before anything is executed is answered with the id under which the log has why', async () => {
  const cause = new Error('the cause: the memory is broken');
  const broken = await startTestServer({
    credentials: { ...knownTokens, ofToken: () => Promise.reject(cause) },
    log: { error: (fields) => void logged.push(fields) },
  });
  const response = await fetch(broken.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
    body: JSON.stringify({ query: '{ __typename }', variables }),
  });
  expect(response.status).toBe(500);
  const { errors } = (await response.json()) as { errors: { extensions: { requestId: string } }[] };
  expect(response.headers.get('x-request-id')).toBe(errors[0]?.extensions.requestId);
  expect(errors).toEqual([
    {
      message: 'The server failed; its log has the cause under the request id.',
      extensions: { code: 'INTERNAL_SERVER_ERROR', requestId: expect.stringMatching(/^[\w-]{36}$/) },
    },
  ]);
  expect(logged).toEqual([
    {
      requestId: errors[0]?.extensions.requestId,
      error: expect.stringMatching(/^Error: the cause: the memory is broken\n +at .*failures\.test\.ts/),
    },
  ]);
  expect(JSON.stringify(logged)).not.toContain(secret);
  await broken.stop();
});

test('a client that leaves while it sends is no failure of the server', async () => {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.write(
    'POST /graphql HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{',
  );
  // It reads the body now.
  await once(socket, 'data');
  socket.resetAndDestroy();
  await once(socket, 'close');
  // The end of the connection is seen before what comes later.
  expect(await post('application/json')('{ __typename }')).toContain('Query');
  expect(logged).toEqual([]);
});
