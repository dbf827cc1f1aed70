import { afterEach, describe, expect, test } from 'vitest';
import {
  knownTokens as credentials,
  bearerOne as one,
  sessionOne as session,
} from '../support/known-tokens.ts';

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
const codeOf = async (response: Response): Promise<unknown> =>
  ((await response.json()) as { errors?: { extensions: { code: string } }[] }).errors?.[0]?.extensions.code;

describe('a request that a browser sends', () => {
  test.each([
    [
      'from another site with a session',
      { ...session, 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    ],
    [
      'from another site without a credential',
      { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    ],
    [
      'from another site with a token',
      { ...one, 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    ],
    ['from a sister site', { ...session, 'sec-fetch-site': 'same-site', origin: 'https://other.example' }],
    [
      'from another site, when the browser tells only its origin',
      { ...session, origin: 'https://evil.example' },
    ],
    ['from a page without an origin', { ...session, origin: 'null' }],
    [
      'from a listed site with the session of this one',
      { ...session, 'sec-fetch-site': 'cross-site', origin: 'https://console.example' },
    ],
  ])('%s is refused', async (_, headers) => {
    await start({ credentials, access: { origins: new Set(['https://console.example']) } });
    for (const response of [await post(headers), await get('{ viewer { name } }', headers)]) {
      expect(response.status).toBe(403);
      expect(await codeOf(response)).toBe('CSRF_REFUSED');
    }
  });

  test('from its own site with a session is answered', async () => {
    await start({ credentials });
    const own = { ...session, 'sec-fetch-site': 'same-origin', origin: server.http.url };
    expect((await post(own)).status).toBe(200);
    expect((await post({ ...session, origin: server.http.url })).status).toBe(200);
    expect((await get('{ viewer { name } }', own)).status).toBe(200);
  });

  test('from a page loaded under a name that an attacker made lead here is refused without authentication', async () => {
    await start();
    const { request } = await import('node:http');
    const statusOf = (method: string, path: string, headers: object) =>
      new Promise((resolve, reject) => {
        const sent = request(
          `${server.url}${path}`,
          { method, headers: { ...json, host: 'evil.example', ...headers } },
          (response) => {
            response.resume();
            resolve(response.statusCode);
          },
        );
        sent.on('error', reject);
        sent.end(method === 'POST' ? question : undefined);
      });
    expect(await statusOf('POST', '', { 'sec-fetch-site': 'same-origin' })).toBe(403);
    expect(await statusOf('POST', '', { host: 'no host', origin: 'http://evil.example' })).not.toBe(500);
    // Browsers send nothing that tells of the page with what it reads from its own name without TLS.
    const read = `?query=${encodeURIComponent('{ viewer { name } }')}`;
    expect(await statusOf('GET', read, {})).toBe(403);
    expect(await statusOf('GET', `/stream${read}`, { accept: 'text/event-stream' })).toBe(403);
    expect(await statusOf('GET', read, { host: 'localhost' })).toBe(200);
    expect(await statusOf('POST', '', {})).toBe(200);
    expect((await post({ 'sec-fetch-site': 'same-origin' })).status).toBe(200);
  });
});

describe('CORS', () => {
  const preflight = (origin: string) =>
    fetch(server.url, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type',
      },
    });

  test('is closed', async () => {
    await start({ credentials });
    const response = await preflight('https://console.example');
    expect(response.status).toBe(403);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('is opened for the origins of a list', async () => {
    await start({ credentials, access: { origins: new Set(['https://console.example']) } });
    const response = await preflight('https://console.example');
    expect(response.status).toBe(204);
    expect(response.headers.get('access-control-allow-origin')).toBe('https://console.example');
    expect(response.headers.get('access-control-allow-credentials')).toBeNull();
    expect((await preflight('https://evil.example')).headers.get('access-control-allow-origin')).toBeNull();

    const answer = await post({ ...one, 'sec-fetch-site': 'cross-site', origin: 'https://console.example' });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://console.example');
    expect(answer.headers.get('vary')).toContain('Origin');
  });
});

describe('a program', () => {
  test('needs no header beside its token', async () => {
    await start({ credentials });
    expect(await (await post(one)).json()).toEqual({ data: { viewer: { name: 'local' } } });
  });

  test.each([
    ['text/plain', question],
    ['application/x-www-form-urlencoded', 'query={viewer{name}}'],
    [
      'multipart/form-data; boundary=x',
      '--x\r\ncontent-disposition: form-data; name="query"\r\n\r\n{viewer{name}}\r\n--x--',
    ],
    ['application/graphql', '{ viewer { name } }'],
  ])('cannot send %s, which forms of other sites can', async (type, body) => {
    await start({ credentials });
    const response = await post({ ...one, 'content-type': type }, body);
    expect(response.status).toBe(415);
    expect(await codeOf(response)).toBe('UNSUPPORTED_MEDIA_TYPE');
  });

  test.each([
    [{ 'content-encoding': 'gzip' }],
    [{ 'content-type': 'application/json; charset=utf-16' }],
    [{ 'content-type': 'application/json, text/plain' }],
  ])('cannot send a body that is not what it is read as: %o', async (headers) => {
    await start({ credentials });
    const response = await post({ ...one, ...headers });
    expect(response.status).toBe(415);
    expect(await codeOf(response)).toBe('UNSUPPORTED_MEDIA_TYPE');
  });

  test('may name the encoding that JSON has', async () => {
    await start({ credentials });
    for (const type of ['Application/JSON; charset="UTF-8"', 'application/json;charset=utf-8'])
      expect((await post({ ...one, 'content-type': type, 'content-encoding': 'identity' })).status).toBe(200);
  });

  test('gets JSON on both paths where it accepts streams too', async () => {
    await start({ credentials });
    for (const path of ['', '/stream', '/stream?x=1']) {
      const response = await fetch(`${server.url}${path}`, {
        method: 'POST',
        headers: { ...json, ...one, accept: 'text/event-stream, application/json' },
        body: question,
      });
      expect(await response.json()).toEqual({ data: { viewer: { name: 'local' } } });
    }
  });
});

describe('by GET', () => {
  const watch = 'subscription { taskStatusChanged { cursor } }';
  const stream = { accept: 'text/event-stream' };

  test('a page of this server subscribes with its session', async () => {
    await start({ credentials });
    const response = await get(watch, { ...session, ...stream, 'sec-fetch-site': 'same-origin' });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    await response.body?.cancel();
  });

  test.each([
    ['a subscription with a token', watch, { ...one, ...stream }, 405, 'METHOD_NOT_ALLOWED'],
    [
      'a subscription of another site',
      watch,
      { ...session, ...stream, 'sec-fetch-site': 'cross-site' },
      403,
      'CSRF_REFUSED',
    ],
    ['a subscription as JSON', watch, { ...session, 'sec-fetch-site': 'same-origin' }, 406, 'NOT_ACCEPTABLE'],
    ['a mutation', 'mutation { cancelRun(runId: "run_x") { __typename } }', one, 405, 'METHOD_NOT_ALLOWED'],
    [
      'a mutation as a stream',
      'mutation { cancelRun(runId: "run_x") { __typename } }',
      { ...session, ...stream, 'sec-fetch-site': 'same-origin' },
      405,
      'METHOD_NOT_ALLOWED',
    ],
  ])('%s is refused', async (_, query, headers, status, code) => {
    await start({ credentials });
    const response = await get(query, headers);
    expect(response.status).toBe(status);
    expect(await codeOf(response)).toBe(code);
  });
});
