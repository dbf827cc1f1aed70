import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { bearerTwo, knownTokens as credentials, bearerOne as one } from '../support/known-tokens.ts';

import { startTestServer, type TestServer, type TestServerOptions } from '../support/server.ts';

let server: TestServer;
const start = async (options: TestServerOptions = {}): Promise<void> => {
  server = await startTestServer(options);
};
afterEach(() => server.stop());

const json = { 'content-type': 'application/json' };
const question = JSON.stringify({ query: '{ viewer { name } }' });
const post = (headers: Record<string, string>, body = question) =>
  fetch(server.url, { method: 'POST', headers: { ...json, ...headers }, body });
const get = (query: string, headers: Record<string, string>) =>
  fetch(`${server.url}?query=${encodeURIComponent(query)}`, { headers });
describe('who is not signed in', () => {
  test('gets no introspection', async () => {
    await start({ credentials });
    for (const query of [
      '{ __schema { types { name } } }',
      'mutation { reportResult(input: {}) { __typename } } query Q { __schema { types { name } } }',
    ]) {
      const response = await post(
        {},
        JSON.stringify({ query, operationName: query.includes(' Q ') ? 'Q' : undefined }),
      );
      expect(response.status).toBe(401);
    }
  });

  test.each(['application/json', 'application/graphql-response+json', 'text/event-stream'])(
    'is not told what the schema has instead, with Accept: %s',
    async (accept) => {
      await start({ credentials });
      const queries = [
        { query: 'mutation { reportResult(input: { attemptIdd: "x" }) { __typenam } }' },
        {
          query:
            'mutation { reportResult(input: { attemptId: "x", leaseToken: "x", status: COMPLETE }) { __typename } }',
        },
        {
          query: 'mutation($input: ReportResultInput!) { reportResult(input: $input) { __typename } }',
          variables: { input: { attemptId: 'x', leaseToken: 'x', statu: 'COMPLETED', status: 'COMPLETE' } },
        },
      ];
      for (const operation of queries) {
        const text = await (await post({ accept }, JSON.stringify(operation))).text();
        expect(text).toContain('errors');
        expect(text).not.toMatch(/Did you mean|it is one of/);
        expect(await (await post({ ...one, accept }, JSON.stringify(operation))).text()).toContain(
          'Did you mean',
        );
      }
    },
  );
});

describe('a token', () => {
  test('may send so many requests a minute, on all paths together, and is told when to go on', async () => {
    await start({ credentials, access: { requestsPerMinute: 3 } });
    for (let i = 0; i < 3; i++) expect((await post(one)).status).toBe(200);
    for (const response of [
      await post(one),
      await get('{ viewer { name } }', one),
      await post({ ...one, accept: 'text/event-stream' }),
    ]) {
      expect(response.status).toBe(429);
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(await response.json()).toMatchObject({
        errors: [{ extensions: { code: 'TOO_MANY_REQUESTS', limit: 3 } }],
      });
    }
    expect((await post(bearerTwo)).status).toBe(200);
  });

  test('cannot be guessed faster than it could be used', async () => {
    await start({ credentials, access: { requestsPerMinute: 3 } });
    const guess = () => post({ authorization: 'Bearer guessed' });
    for (let i = 0; i < 3; i++) expect((await guess()).status).toBe(401);
    expect((await guess()).status).toBe(429);
    expect((await post(one)).status).toBe(200);
  });

  test('cannot be guessed, nor sessions be opened, faster at the doors of pages', async () => {
    await start({ credentials, access: { requestsPerMinute: 3 } });
    const at = (path: string, headers: Record<string, string>, method = 'GET') =>
      fetch(`${server.http.url}${path}`, { method, headers });
    for (let i = 0; i < 3; i++) expect((await at('/graphiql', one)).status).toBe(200);
    expect((await at('/graphiql', one)).status).toBe(429);
    const guessed = { authorization: 'Bearer guessed' };
    expect((await at('/graphiql', guessed)).status).toBe(401);
    expect((await at('/session', guessed, 'POST')).status).toBe(401);
    expect((await at('/session', { cookie: 'runplane_session=guessed' }, 'DELETE')).status).toBe(204);
    expect((await at('/graphiql', guessed)).status).toBe(429);
    for (const method of ['POST', 'DELETE']) expect((await at('/session', one, method)).status).toBe(429);
  });

  test('may have so many streams open, and another when one is closed', async () => {
    await start({ credentials, access: { streamsPerToken: 2 } });
    const watch = JSON.stringify({ query: 'subscription { taskStatusChanged { cursor } }' });
    const open = async (headers: Record<string, string> = one) => {
      const left = new AbortController();
      const response = await fetch(server.url, {
        method: 'POST',
        headers: { ...json, ...headers, accept: 'text/event-stream' },
        body: watch,
        signal: left.signal,
      });
      return { response, leave: () => left.abort() };
    };
    const first = await open();
    const second = await open();
    expect([first.response.status, second.response.status]).toEqual([200, 200]);
    const third = await open();
    expect(third.response.status).toBe(429);
    expect(Number(third.response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(await third.response.json()).toMatchObject({
      errors: [{ extensions: { code: 'TOO_MANY_STREAMS', limit: 2 } }],
    });
    const other = await open(bearerTwo);
    expect(other.response.status).toBe(200);
    first.leave();
    await expect
      .poll(async () => {
        const { response, leave } = await open();
        leave();
        return response.status;
      })
      .toBe(200);
    second.leave();
    other.leave();
  });
});

test('a connection that stops in the middle of a request is closed', async () => {
  await start({ credentials, access: { silentSeconds: 0.1 } });
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.write(
    'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  );
  await once(socket, 'close');
});

test('bodies of strangers that never end take up no more than their room, and give it back', async () => {
  await start({ credentials });
  const { hostname, port } = new URL(server.url);
  const chunk = ' '.repeat(limits.resultBodyBytes - 1);
  const endless = Array.from({ length: limits.strangersBodyBytes / limits.resultBodyBytes }, () => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    socket.write(
      `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${limits.resultBodyBytes}\r\n\r\n${chunk}`,
    );
    return socket;
  });
  const report = JSON.stringify({
    query: 'mutation { extendLeases(leases: []) { state } }',
    variables: { more: ' '.repeat(1000) },
  });
  await expect.poll(async () => (await post({}, report)).status).toBe(429);
  const refused = await post({}, report);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(await refused.json()).toMatchObject({
    errors: [{ extensions: { code: 'TOO_MANY_REQUESTS', limit: limits.strangersBodyBytes } }],
  });
  // Who is known is not concerned.
  expect((await post(one)).status).toBe(200);
  for (const socket of endless) socket.destroy();
  await expect.poll(async () => (await post({}, report)).status).toBe(200);
});
