import { type GraphQLField, getNamedType, getNullableType, isListType, isObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Scope } from '../../src/domain/credential.ts';
import { limits } from '../../src/domain/limits.ts';
import { everything, schema } from '../graphql/client.ts';
import { adminToken, bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';
import { StreamByHand } from '../support/stream-by-hand.ts';

let server: GuardedServer;
beforeAll(async () => {
  server = await startGuardedServer();
});
afterAll(() => server.stop());

interface Refusal {
  message: string;
  locations?: object[];
  extensions: Record<string, unknown>;
}
interface Answered {
  status: number;
  body: { data?: unknown; errors?: Refusal[] };
}
type Ask = (token: string, query: string, variables?: object) => Promise<Answered>;

const post =
  (accept: string): Ask =>
  async (token, query, variables = {}) => {
    const response = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept, ...bearer(token) },
      body: JSON.stringify({ query, variables }),
    });
    return { status: response.status, body: (await response.json()) as Answered['body'] };
  };
const overOneConnection: Ask = async (token, query, variables) => {
  const stream = new StreamByHand(`${server.http.url}/graphql/stream`);
  const { token: reserved } = await stream.reserve(bearer(token));
  const operation = { query, variables, extensions: { operationId: '1' } };
  const response = await stream.send(reserved, operation, bearer(token));
  return { status: response.status, body: (await response.json()) as Answered['body'] };
};
const asJson = post('application/json');
const transports: [string, Ask][] = [
  ['as application/json', asJson],
  ['as application/graphql-response+json', post('application/graphql-response+json')],
  ['as an event stream', post('text/event-stream')],
  ['over a single connection', overOneConnection],
];

/** A refusal has no data: nothing was executed, or nothing of it is answered. */
const refusal = (status: number, extensions: object) => ({
  status,
  body: { errors: [{ message: expect.any(String), locations: [expect.any(Object)], extensions }] },
});

type Field = GraphQLField<unknown, unknown>;
const pages = Object.values(schema.getTypeMap()).flatMap((type) =>
  isObjectType(type)
    ? Object.values(type.getFields() as Record<string, Field>)
        .filter(({ args }) => args.some(({ name }) => name === 'first'))
        .map((field) => ({ type, field }))
    : [],
);
const batches = (Object.values(schema.getMutationType()?.getFields() ?? {}) as Field[]).flatMap((field) => {
  const batch = field.args.find(({ type }) => isListType(getNullableType(type)));
  return batch && isListType(getNullableType(field.type)) ? [{ field, batch }] : [];
});

describe.each(transports)('asked %s,', (how, ask) => {
  test('a batch of more than 1,000 entries is refused, however it is given', async () => {
    const actual = limits.batch + 1;
    const inputs = Array.from({ length: actual }, () => ({ job: 'x' }));
    const tooLarge = refusal(400, { code: 'BATCH_TOO_LARGE', field: 'inputs', limit: limits.batch, actual });
    const byVariable = 'mutation($all: [LaunchRunInput!]!) { launchRuns(inputs: $all) { __typename } }';
    expect(await ask(adminToken, byVariable, { all: inputs })).toEqual(tooLarge);
    const inDocument = `mutation { launchRuns(inputs: [${'{} '.repeat(actual)}]) { __typename } }`;
    expect(await ask(adminToken, inDocument)).toEqual(tooLarge);
  });

  test('a page of more than 200 entries is refused, however it is asked for', async () => {
    const tooLarge = (field: string, actual: number) =>
      refusal(400, { code: 'PAGE_TOO_LARGE', field, limit: limits.page, actual });
    expect(await ask(adminToken, '{ runs(first: 201) { nodes { id } } }')).toEqual(tooLarge('first', 201));
    expect(
      await ask(
        adminToken,
        'query($n: Int) { runs(first: 1) { nodes { tasks(last: $n) { nodes { id } } } } }',
        {
          n: 500,
        },
      ),
    ).toEqual(tooLarge('last', 500));
    expect(
      await ask(
        adminToken,
        'query($n: Int = 999) { ...F } fragment F on Query { runs(first: $n) { nodes { id } } }',
      ),
    ).toEqual(tooLarge('first', 999));
    expect(await ask(adminToken, '{ runs(first: 100000000) { nodes { id } } }')).toEqual(
      tooLarge('first', 100_000_000),
    );
  });

  test('a question or stream is refused of which a token may get nothing', async () => {
    const forbidden = (scope: Scope) => refusal(403, { code: 'FORBIDDEN', scope });
    const { secret } = await server.token({ scopes: ['LAUNCH'] });
    for (const query of [
      '{ runs { nodes { id } } }',
      '{ ...F } fragment F on Query { ... { runs { nodes { id } } } }',
      ...(how.includes('json') ? [] : ['subscription { runStatusChanged { cursor } }']),
      // Without it there is no data at all.
      '{ viewer { name } changeLogCursor }',
    ])
      expect(await ask(secret, query), query).toEqual(forbidden('READ'));
    const reader = await server.token({ scopes: ['READ'] });
    expect(await ask(reader.secret, `{ one: node(id: "${reader.id}") { id } }`)).toEqual(forbidden('ADMIN'));
    const both = await ask(secret, '{ runs { nodes { id } } apiTokens { nodes { id } } }');
    expect(both.status).toBe(403);
    expect(both.body.errors?.map(({ extensions }) => extensions.scope)).toEqual(['READ', 'ADMIN']);
  });
});

test('a page of 200 entries and a batch of 1,000 are answered', async () => {
  expect((await asJson(adminToken, '{ runs(first: 200) { nodes { id } } }')).body).toEqual({
    data: { runs: { nodes: [] } },
  });
  const inputs = Array.from({ length: limits.batch }, () => ({ job: 'x' }));
  const query = 'mutation($inputs: [LaunchRunInput!]!) { launchRuns(inputs: $inputs) { __typename } }';
  const { data } = (await asJson(adminToken, query, { inputs })).body as { data: { launchRuns: object[] } };
  expect(data.launchRuns).toHaveLength(limits.batch);
});

test.each(pages.map(({ type, field }) => [`${type.name}.${field.name}`, type, field] as const))(
  'a page of %s has at most 200 entries',
  async (_, type, field) => {
    const args = field.args.filter(({ name }) => name === 'first' || name === 'last').map(({ name }) => name);
    expect(args.length).toBeGreaterThan(0);
    for (const name of args) {
      const asked = `${field.name}(${name}: 201) ${everything(getNamedType(field.type).name, 0)}`;
      // Limits hold before a document is found to fit the schema.
      const query =
        type.name === 'Query' ? `{ ${asked} }` : `{ node(id: "x") { ... on ${type.name} { ${asked} } } }`;
      const { status, body } = await asJson(adminToken, query);
      expect([status, body.errors?.[0]?.extensions.code], query).toEqual([400, 'PAGE_TOO_LARGE']);
    }
  },
);

test.each(batches.map(({ field, batch }) => [field.name, field, batch] as const))(
  'a batch of %s has at most 1,000 entries',
  async (name, field, batch) => {
    const query = `mutation($all: ${String(batch.type)}) { ${name}(${batch.name}: $all) ${everything(getNamedType(field.type).name, 0)} }`;
    const { status, body } = await asJson(adminToken, query, { all: Array(limits.batch + 1).fill({}) });
    expect([status, body.errors?.[0]?.extensions]).toEqual([
      400,
      { code: 'BATCH_TOO_LARGE', field: batch.name, limit: limits.batch, actual: limits.batch + 1 },
    ]);
  },
);

test('batches are the commands that say so', () => {
  expect(batches.map(({ field }) => field.name).sort()).toEqual([
    'extendLeases',
    'launchRuns',
    'publishEvents',
    'reportResults',
  ]);
});

test('what a token may see is answered beside what it may not', async () => {
  const { secret } = await server.token({ scopes: ['LAUNCH'] });
  const partly = await asJson(secret, '{ viewer { name } runs { nodes { id } } }');
  expect(partly).toMatchObject({
    status: 200,
    body: {
      data: { viewer: { name: 'test' }, runs: null },
      errors: [{ path: ['runs'], extensions: { code: 'FORBIDDEN', scope: 'READ' } }],
    },
  });
  expect(await asJson(secret, '{ __typename runs { nodes { id } } }')).toMatchObject({ status: 200 });
  // Who leaves out what they may not see gets the rest.
  const left = 'query($no: Boolean = false) { viewer { name } changeLogCursor @include(if: $no) }';
  expect(await asJson(secret, left)).toEqual({ status: 200, body: { data: { viewer: { name: 'test' } } } });
});

test('a command without its scope is answered with a value', async () => {
  const { secret } = await server.token({ scopes: ['READ'] });
  expect(await asJson(secret, 'mutation { launchRun(input: { job: "x" }) { __typename } }')).toEqual({
    status: 200,
    body: { data: { launchRun: { __typename: 'Forbidden' } } },
  });
});
