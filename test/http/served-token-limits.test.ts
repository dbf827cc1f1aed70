import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openEventStream } from '../support/event-stream.ts';
import { adminToken, bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';
import { startTestServer } from '../support/server.ts';

const streamsPerToken = 2;
const requestsPerMinute = 100_000;

let server: GuardedServer;
beforeAll(async () => {
  server = await startGuardedServer({}, { access: { streamsPerToken, requestsPerMinute } });
});
afterAll(() => server.stop());

describe('what settings allow a token', () => {
  test('is served as it is set', async () => {
    const { server: info } = await server.as(adminToken, '{ server { limits { name value } } }');
    expect(info.limits).toContainEqual({ name: 'streamsPerToken', value: streamsPerToken });
    expect(info.limits).toContainEqual({ name: 'requestsPerMinute', value: requestsPerMinute });
  });

  test('is what is refused beyond it', async () => {
    const { secret } = await server.token({ scopes: ['READ'] });
    const open = () =>
      openEventStream(server.url, 'subscription { runStatusChanged { cursor } }', bearer(secret));
    const streams = [];
    for (let i = 0; i < streamsPerToken; i++) streams.push(await open());
    expect(streams.map(({ response }) => response.status)).toEqual([200, 200]);
    const { response } = await open();
    expect(response.status).toBe(429);
    for (const stream of streams) stream.leave();
  });

  test('is not served where it is no limit', async () => {
    const free = await startGuardedServer({}, { access: { requestsPerMinute: 0 } });
    const { server: info } = await free.as(adminToken, '{ server { limits { name } } }');
    expect(info.limits).not.toContainEqual({ name: 'requestsPerMinute' });
    expect(info.limits).toContainEqual({ name: 'streamsPerToken' });
    await free.stop();
  });

  test('is not served without authentication, where nobody has a token', async () => {
    const open = await startTestServer();
    const served = JSON.stringify(await open.post('{ server { limits { name } } }'));
    expect(served).toContain('queryCost');
    expect(served).not.toMatch(/streamsPerToken|requestsPerMinute/);
    await open.stop();
  });
});
