import { readdirSync, readFileSync } from 'node:fs';
import { getIntrospectionQuery, parse, validate } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { findExceededLimit } from '../../src/graphql/query-limits.ts';
import { buildSchema } from '../../src/graphql/schema.ts';
import { settings } from '../../src/settings.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const ask = (query: string, accept: string, variables: object = {}) =>
  fetch(server.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept },
    body: JSON.stringify({ query, variables }),
  });

const nested = (levels: number): string =>
  `{ run(id: "run_x") { ${'parentRun { '.repeat(levels - 2)}id${' }'.repeat(levels)}`;
const times = (count: number, part: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => part(i)).join(' ');
/** Each fragment asks for the next twice: the text is short, what it asks for is not. */
const doubling = (): string =>
  `{ run(id: "run_x") { ...F0 } } ${times(17, (i) => `fragment F${i} on Run { l: parentRun { ...F${i + 1} } r: parentRun { ...F${i + 1} } }`)} fragment F17 on Run { id }`;

const beyond: [string, string, object, string, object][] = [
  [
    'more tokens',
    `{ viewer { ${'name '.repeat(limits.queryTokens)} } }`,
    {},
    'QUERY_TOO_LARGE',
    { limit: limits.queryTokens },
  ],
  [
    'more levels',
    nested(limits.queryDepth + 1),
    {},
    'QUERY_TOO_DEEP',
    { limit: limits.queryDepth, actual: limits.queryDepth + 1 },
  ],
  [
    'more levels in fragments',
    `{ run(id: "run_x") { ...F0 } } ${times(limits.queryDepth, (i) => `fragment F${i} on Run { parentRun { ...F${i + 1} } }`)} fragment F${limits.queryDepth} on Run { id }`,
    {},
    'QUERY_TOO_DEEP',
    { limit: limits.queryDepth },
  ],
  ['far more levels', nested(1000), {}, 'QUERY_TOO_DEEP', { limit: limits.queryDepth }],
  [
    'more aliases',
    `{ viewer { ${times(limits.queryAliases + 1, (i) => `a${i}: name`)} } }`,
    {},
    'TOO_MANY_ALIASES',
    { limit: limits.queryAliases, actual: limits.queryAliases + 1 },
  ],
  [
    'more root fields',
    `{ ${times(limits.queryRootFields + 1, (i) => `a${i}: changeLogCursor`)} }`,
    {},
    'TOO_MANY_ROOT_FIELDS',
    { limit: limits.queryRootFields, actual: limits.queryRootFields + 1 },
  ],
  [
    'more root fields in a fragment',
    `{ ...F ...F } fragment F on Query { ${times(limits.queryRootFields - 1, (i) => `a${i}: changeLogCursor`)} }`,
    {},
    'TOO_MANY_ROOT_FIELDS',
    { limit: limits.queryRootFields },
  ],
  [
    'more root fields of a mutation',
    `mutation { ${times(limits.queryRootFields + 1, (i) => `a${i}: cancelRun(runId: "run_x") { __typename }`)} }`,
    {},
    'TOO_MANY_ROOT_FIELDS',
    { limit: limits.queryRootFields },
  ],
  [
    'larger pages',
    '{ runs(first: 200) { nodes { tasks(last: 200) { nodes { id status agent { name } usage { totalTokens } } } } } }',
    {},
    'QUERY_TOO_EXPENSIVE',
    // runs, nodes, 200 × (tasks, nodes, 200 × (id, status, agent, name, usage, totalTokens))
    { limit: limits.queryCost, actual: 2 + 200 * (2 + 200 * 6) },
  ],
  [
    'larger pages by variables',
    'query($first: Int, $last: Int = 200) { runs(first: $first) { edges { node { tasks(last: $last) { nodes { id status agent { name } usage { totalTokens } } } } } } }',
    { first: 200 },
    'QUERY_TOO_EXPENSIVE',
    { limit: limits.queryCost, actual: 2 + 200 * (3 + 200 * 6) },
  ],
  [
    'a page of each entry of a batch',
    'mutation($inputs: [LaunchRunInput!]!) { launchRuns(inputs: $inputs) { ... on LaunchRunSuccess { run { tasks(first: 200) { nodes { id } } } } } }',
    { inputs: Array.from({ length: 1000 }, () => ({ job: 'x' })) },
    'QUERY_TOO_EXPENSIVE',
    { limit: limits.queryCost, actual: 1 + 1000 * (3 + 200) },
  ],
  [
    'a page whose variable is named as something that every object has',
    'query($constructor: Int = 200) { runs(first: $constructor) { nodes { tasks(first: $constructor) { nodes { id status agent { name } usage { totalTokens } } } } } }',
    {},
    'QUERY_TOO_EXPENSIVE',
    { limit: limits.queryCost, actual: 2 + 200 * (2 + 200 * 6) },
  ],
  [
    'lists of lists with a number that is not how many they have',
    `{ assets(first: 200) { nodes { ${'lineage(direction: BOTH, depth: 1) { upstream { '.repeat(4)}id${' } }'.repeat(4)} } } }`,
    {},
    'QUERY_TOO_EXPENSIVE',
    // assets, nodes, 200 × (lineage, 10 × (upstream, lineage, 10 × …))
    { limit: limits.queryCost, actual: 2 + 200 * (1 + 10 * (2 + 10 * (2 + 10 * (2 + 10 * 2)))) },
  ],
  [
    'introspections',
    `{ ${times(20, (i) => `a${i}: __schema { types { fields { args { type { name kind ofType { name kind ofType { name kind } } } name description } } } }`)} }`,
    {},
    'QUERY_TOO_EXPENSIVE',
    { limit: limits.queryCost, actual: 20 * (1 + (1 + 10 * (1 + 10 * (1 + 10 * 11)))) },
  ],
  ['more by fragments of fragments', doubling(), {}, 'QUERY_TOO_EXPENSIVE', { limit: limits.queryCost }],
];

describe.each([['application/json'], ['application/graphql-response+json'], ['text/event-stream']])(
  'with Accept: %s',
  (accept) => {
    test.each(beyond)(
      '%s than allowed are refused, and the answer says how many',
      async (_, query, variables, code, extensions) => {
        const response = await ask(query, accept, variables);
        expect(response.status).toBe(400);
        const { errors } = (await response.json()) as { errors: { message: string }[] };
        expect(errors).toMatchObject([{ extensions: { code, ...extensions } }]);
        for (const number of Object.values(extensions)) expect(errors[0]?.message).toContain(String(number));
      },
    );

    test('a document that fits no limit and no schema is told what is wrong with it', async () => {
      const response = await ask('{ runs { nodes { stats } } }', accept);
      expect(response.status).toBe(accept === 'application/json' ? 200 : 400);
      expect(await response.json()).toMatchObject({
        errors: [
          {
            message: 'Cannot query field "stats" on type "Run". Did you mean "status", "steps", or "tasks"?',
            extensions: { code: 'GRAPHQL_VALIDATION_FAILED' },
          },
        ],
      });
    });

    test('what is no GraphQL is told', async () => {
      const response = await ask('{ runs(', accept);
      expect(response.status).toBe(accept === 'application/json' ? 200 : 400);
      expect(await response.json()).toMatchObject({
        errors: [{ extensions: { code: 'GRAPHQL_PARSE_FAILED' } }],
      });
    });
  },
);

test('exactly as much as is allowed is answered', async () => {
  for (const query of [
    nested(limits.queryDepth),
    `{ viewer { ${times(limits.queryAliases, (i) => `a${i}: name`)} } }`,
    `{ ${times(limits.queryRootFields, (i) => `a${i}: changeLogCursor`)} }`,
    // runs, nodes, 200 × (tasks, nodes, 199 × (5 values)) = 199,402
    '{ runs(first: 200) { nodes { tasks(first: 199) { nodes { id status agent { name } step } } } } }',
  ]) {
    expect(await server.post(query)).not.toHaveProperty('errors');
  }
});

test('introspection, which is 15 levels deep, is answered to who is signed in', async () => {
  const { data, errors } = await server.post(getIntrospectionQuery({ descriptions: true, oneOf: true }));
  expect(errors).toBeUndefined();
  expect(data).toHaveProperty('__schema.types');
});

test('the answers of introspection cannot be multiplied', async () => {
  const { errors } = await server.post(
    '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }',
  );
  expect(errors).toMatchObject([{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }]);
});

test('a value that is nested deep is refused, and the server goes on', async () => {
  const query = `{ previewRoutes(topic: "a", payload: ${'['.repeat(2400)}${']'.repeat(2400)}) { route } }`;
  expect(await server.post(query)).toHaveProperty('errors');
  expect(await server.post('{ __typename }')).toEqual({ data: { __typename: 'Query' } });
});

test('our own operations and the examples of GraphiQL are valid and within the limits', () => {
  const folder = new URL('../../schema/operations/', import.meta.url);
  const schema = buildSchema();
  for (const file of readdirSync(folder)) {
    const document = parse(readFileSync(new URL(file, folder), 'utf8'), {
      maxLexicalTokens: limits.queryTokens,
    });
    expect(validate(schema, document)).toEqual([]);
    expect(findExceededLimit(schema, document, null)).toBeNull();
  }
});

test('the server tells its limits', async () => {
  const { data } = await server.post('{ server { maxBatch maxPage limits { name value } } }');
  const told = (data as unknown as { server: { limits: { name: string; value: number }[] } }).server.limits;
  expect(told).toContainEqual({ name: 'queryCost', value: limits.queryCost });
  expect(told).toContainEqual({ name: 'batch', value: limits.batch });
  expect(told).toContainEqual({ name: 'leaseSeconds.max', value: limits.leaseSeconds.max });
});

test('docs/api-limits.md says the same numbers', () => {
  const text = readFileSync(new URL('../../docs/api-limits.md', import.meta.url), 'utf8');
  const rows = [...text.matchAll(/^\| .+? \| ([\d,]+) +\|.*`([A-Z_]+)` +\|$/gm)].map(([, number, code]) => [
    code,
    Number(number?.replaceAll(',', '')),
  ]);
  expect(rows).toEqual([
    ['QUERY_TOO_LARGE', limits.queryTokens],
    ['QUERY_TOO_DEEP', limits.queryDepth],
    ['TOO_MANY_ALIASES', limits.queryAliases],
    ['TOO_MANY_ROOT_FIELDS', limits.queryRootFields],
    ['QUERY_TOO_EXPENSIVE', limits.queryCost],
    ['BATCH_TOO_LARGE', limits.batch],
    ['PAGE_TOO_LARGE', limits.page],
    ['TOO_MANY_REQUESTS', Number(settings.RUNPLANE_REQUESTS_PER_MINUTE.default)],
    ['TOO_MANY_STREAMS', Number(settings.RUNPLANE_STREAMS_PER_TOKEN.default)],
  ]);
});
