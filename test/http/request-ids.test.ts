import { GraphQLObjectType, GraphQLScalarType, GraphQLSchema, GraphQLString } from 'graphql';
import { afterEach, expect, test } from 'vitest';
import { openEventStream } from '../support/event-stream.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { StreamByHand } from '../support/stream-by-hand.ts';

let server: TestServer;
afterEach(() => server.stop());

const post = async (query: string, accept = 'application/json') => {
  const response = await fetch(server.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept },
    body: JSON.stringify({ query }),
  });
  return { id: response.headers.get('x-request-id'), text: await response.text() };
};
const entries = async (): Promise<{ requestId: string }[]> =>
  server.plane.rows(`select request_id as "requestId" from runplane.audit_entries order by id`);

test('entries of the audit log have the id of the request that made them, which its answer tells', async () => {
  server = await startTestServer();
  await server.plane.agent('a');
  const before = (await entries()).length;
  const pause =
    'one: pauseAgent(name: "a") { __typename } two: saveQueue(input: { name: "q", pool: "core" }) { __typename }';
  const both = await post(`mutation { ${pause} }`);
  const streamed = await post('mutation { resumeAgent(name: "a") { __typename } }', 'text/event-stream');
  const { auditLog } = (await server.post('{ auditLog(first: 3) { nodes { requestId } } }'))
    .data as unknown as {
    auditLog: { nodes: { requestId: string }[] };
  };
  const made = (await entries()).slice(before).map(({ requestId }) => requestId);
  expect(made).toEqual([both.id, both.id, streamed.id]);
  expect(new Set([both.id, streamed.id]).size).toBe(2);
  for (const id of made) expect(id).toMatch(/^[\w-]{36}$/);
  expect(auditLog.nodes.map(({ requestId }) => requestId).sort()).toEqual([...made].sort());
});

test('over a single connection each operation is a request of its own', async () => {
  server = await startTestServer();
  const stream = new StreamByHand(`${server.http.url}/graphql/stream`);
  const { token } = await stream.reserve();
  const ids: (string | null)[] = [];
  for (const name of ['p', 'q']) {
    const query = `mutation { saveQueue(input: { name: "${name}", pool: "core" }) { __typename } }`;
    const response = await stream.send(token, { query, extensions: { operationId: name } });
    ids.push(response.headers.get('x-request-id'));
  }
  expect(
    (await entries()).filter(({ requestId }) => requestId !== null).map(({ requestId }) => requestId),
  ).toEqual(ids);
  expect(new Set(ids).size).toBe(2);
});

test('an error of the server has the same id, in the answer and in the log', async () => {
  const logged: { requestId?: string }[] = [];
  const fail = { type: GraphQLString, resolve: () => Promise.reject(new Error('why')) };
  const schema = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: { fail } }) });
  server = await startTestServer({ schema, log: { error: (fields) => void logged.push(fields) } });
  for (const accept of ['application/json', 'text/event-stream']) {
    const { id, text } = await post('{ fail }', accept);
    expect(text).toContain(`"requestId":"${id}"`);
    expect(logged.at(-1)?.requestId).toBe(id);
  }
});

test('what fails after it was executed has the same id, though it is no field that failed', async () => {
  const logged: { requestId?: string; error?: string }[] = [];
  // JSON has no such number.
  const type = new GraphQLScalarType({ name: 'Unwritable', serialize: () => 1n });
  const unwritable = { type, resolve: () => 1 };
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { unwritable } }),
  });
  server = await startTestServer({ schema, log: { error: (fields) => void logged.push(fields) } });
  const { id, text } = await post('{ unwritable }');
  expect(text).toContain(`"requestId":"${id}"`);
  expect(logged).toEqual([
    expect.objectContaining({ requestId: id, error: expect.stringMatching(/^TypeError\n/) }),
  ]);
});

test('a stream has the id of its request', async () => {
  server = await startTestServer();
  const stream = await openEventStream(server.url, 'subscription { runStatusChanged { cursor } }');
  expect(stream.response.headers.get('x-request-id')).toMatch(/^[\w-]{36}$/);
  stream.leave();
});
