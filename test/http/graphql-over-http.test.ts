import { serverAudits } from 'graphql-http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

describe('the GraphQL-over-HTTP specification', () => {
  const audits = serverAudits({ url: () => server.url, fetchFn: fetch });
  const required = audits.filter(({ name }) => !name.startsWith('MAY'));
  test.each(required.map((audit) => [audit.name, audit] as const))('%s', async (_, audit) => {
    expect(await audit.fn()).toMatchObject({ status: 'ok' });
  });

  test('what it leaves open is done otherwise in these cases only', async () => {
    const optional = audits.filter(({ name }) => name.startsWith('MAY'));
    const notices: string[] = [];
    for (const audit of optional) {
      if ((await audit.fn()).status !== 'ok') notices.push(audit.name);
    }
    expect(notices).toEqual([]);
  });
});

const request = (init: RequestInit & { path?: string }) => fetch(server.url + (init.path ?? ''), init);
const json = { 'content-type': 'application/json' };

describe('a request that is refused', () => {
  test.each([
    [
      'form data',
      {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: 'query={__typename}',
      },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'text that a browser sends without asking',
      { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{}' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    ['no JSON', { method: 'POST', headers: json, body: '{"query":' }, 400, 'BAD_REQUEST'],
    ['a batch', { method: 'POST', headers: json, body: '[{"query":"{ __typename }"}]' }, 400, 'BAD_REQUEST'],
    [
      'more than 1 MiB',
      {
        method: 'POST',
        headers: json,
        body: JSON.stringify({ query: '{ __typename }', variables: { x: 'x'.repeat(1_100_000) } }),
      },
      413,
      'BODY_TOO_LARGE',
    ],
    [
      'more than 8 MiB',
      { method: 'POST', headers: json, body: 'x'.repeat(9_000_000) },
      413,
      'BODY_TOO_LARGE',
    ],
    [
      'a stream of a bad document',
      {
        method: 'POST',
        headers: { ...json, accept: 'text/event-stream' },
        body: '{"query":"subscription { nothing }"}',
      },
      400,
      'GRAPHQL_VALIDATION_FAILED',
    ],
    [
      'a mutation by GET as a stream',
      {
        path: '?query=mutation{launchRun(input:{job:"x"}){__typename}}',
        headers: { accept: 'text/event-stream' },
      },
      405,
      'METHOD_NOT_ALLOWED',
    ],
  ])('because it is %s', async (_, init, status, code) => {
    const response = await request(init);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ errors: [{ extensions: { code } }] });
  });

  test.each([
    [JSON.stringify({ query: '{ __typename }', more: 'x'.repeat(1_100_000) }), limits.bodyBytes],
    ['x'.repeat(9_000_000), limits.resultBodyBytes],
  ])('for its size names the limit', async (body, limit) => {
    const response = await request({ method: 'POST', headers: json, body });
    expect(await response.json()).toMatchObject({
      errors: [
        { message: expect.stringContaining(String(limit)), extensions: { code: 'BODY_TOO_LARGE', limit } },
      ],
    });
  });

  test.each(['text/html', 'text/html, image/*;q=0.8', 'application/json; charset=iso-8859-1'])(
    'because its answer would not be accepted (%s) is not executed',
    async (accept) => {
      const query =
        'mutation { saveThrottle(input: { name: "unaccepted", maxConcurrentTasks: 1 }) { __typename } }';
      const response = await request({
        method: 'POST',
        headers: { ...json, accept },
        body: JSON.stringify({ query }),
      });
      expect(response.status).toBe(406);
      expect(response.headers.get('content-type')).toContain('application/json');
      expect(await response.json()).toMatchObject({
        errors: [{ message: expect.any(String), extensions: { code: 'NOT_ACCEPTABLE' } }],
      });
      expect(await server.post('{ throttles { nodes { name } } }')).toEqual({
        data: { throttles: { nodes: [] } },
      });
    },
  );

  test.each(['', '*/*', 'text/html, */*;q=0.1', 'application/*', 'Application/JSON;charset=UTF-8'])(
    'is none for Accept: %s',
    async (accept) => {
      const body = '{"query":"{ __typename }"}';
      const response = await request({ method: 'POST', headers: { ...json, accept }, body });
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({ data: { __typename: 'Query' } });
    },
  );

  test('and the server goes on', async () => {
    expect(await server.post('{ __typename }')).toEqual({ data: { __typename: 'Query' } });
  });
});

test('fields are answered in the order in which they are selected, however long each takes', async () => {
  const { data } = await server.post('{ later: server { now version } sooner: viewer { name } }');
  expect(JSON.stringify(data)).toMatch(/^{"later":{"now":"[^"]*","version":"[^"]*"},"sooner"/);
});

test('a result may be larger than other requests', async () => {
  const query = 'mutation($inputs: [ReportResultInput!]!) { reportResults(inputs: $inputs) { __typename } }';
  const inputs = [
    { attemptId: 'att_x', leaseToken: 'x', status: 'COMPLETED', output: 'x'.repeat(2_000_000) },
  ];
  expect(await server.post(query, { inputs })).toEqual({
    data: { reportResults: [{ __typename: 'LeaseTokenInvalid' }] },
  });
});

test('health says what runs', async () => {
  expect(await (await fetch(`${server.http.url}/healthz`)).json()).toMatchObject({
    status: 'ok',
    version: '0.0.0-test',
  });
  expect((await fetch(`${server.http.url}/readyz`)).status).toBe(200);
  expect((await fetch(`${server.http.url}/nothing`)).status).toBe(404);
});

test('origins of other sites are not allowed', async () => {
  const response = await request({
    method: 'POST',
    headers: { ...json, origin: 'https://evil.example' },
    body: '{"query":"{ __typename }"}',
  });
  expect(response.headers.get('access-control-allow-origin')).toBeNull();
});
