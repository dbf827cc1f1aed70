import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { afterEach, describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { documentHash } from '../../src/http/trusted-documents.ts';
import { bearerOne, bearerTwo, knownTokens, sessionOne } from '../support/known-tokens.ts';
import { startTestServer, type TestServer, type TestServerOptions } from '../support/server.ts';
import { ask, codeOf, StreamByHand } from '../support/stream-by-hand.ts';

let server: TestServer;
let stream: StreamByHand;
const start = async (options: TestServerOptions = {}): Promise<void> => {
  server = await startTestServer(options);
  stream = new StreamByHand(`${server.http.url}/graphql/stream`);
};
afterEach(() => server.stop());

const watchRuns = 'subscription { runStatusChanged { changes { runId toStatus } } }';

describe('a slow reader', () => {
  interface Flood {
    produced: number;
    ended: boolean;
  }

  const flooding = (flood: Flood): GraphQLSchema =>
    new GraphQLSchema({
      query: new GraphQLObjectType({ name: 'Query', fields: { ok: { type: GraphQLString } } }),
      subscription: new GraphQLObjectType({
        name: 'Subscription',
        fields: {
          flood: {
            type: GraphQLString,
            resolve: () => 'x'.repeat(64 * 1024),
            subscribe: async function* () {
              try {
                for (;;) {
                  flood.produced++;
                  yield {};
                }
              } finally {
                flood.ended = true;
              }
            },
          },
        },
      }),
    });

  test('is sent no more than it reads, and what it left behind ends', async () => {
    const flood = { produced: 0, ended: false };
    await start({ schema: flooding(flood) });
    const { token } = await stream.reserve();
    expect((await stream.send(token, ask('1', 'subscription { flood }'))).status).toBe(202);
    const isFull = async (): Promise<boolean> => {
      const refused = await stream.send(token, ask('2', '{ ok }'));
      if (refused.status !== 429) return false;
      expect(await codeOf(refused)).toBe('SLOW_CONSUMER');
      return true;
    };
    // Before anybody reads, only so many messages wait.
    await expect.poll(isFull).toBe(true);
    expect(flood.produced).toBeLessThanOrEqual(limits.unsentMessages);
    // A connection that is not read fills the buffers of the network; then the stream stands still.
    const { readUntil, leave } = await stream.connect(token);
    await expect.poll(() => flood.produced).toBeGreaterThan(limits.unsentMessages);
    let still = 0;
    const standsStill = async (): Promise<boolean> => {
      const before = still;
      still = flood.produced;
      return (await isFull()) && before === still;
    };
    await expect.poll(standsStill, { timeout: 20_000, interval: 200 }).toBe(true);
    expect(await isFull()).toBe(true);
    expect(flood.produced).toBe(still);
    while (flood.produced === still) await readUntil('event: next');
    leave();
    await expect.poll(() => flood.ended).toBe(true);
    await expect.poll(async () => (await stream.send(token, ask('3', '{ ok }'))).status).toBe(404);
  });
});

describe('a reservation', () => {
  test('has a token that cannot be guessed, or chosen', async () => {
    await start();
    const chosen = await stream.reserve({ 'x-graphql-event-stream-token': 'mine' });
    const { token } = await stream.reserve();
    expect(chosen.token).not.toBe('mine');
    expect(token).toMatch(/^[\w-]{32}$/);
    expect(token).not.toBe(chosen.token);
    for (const guess of ['mine', 'constructor', '__proto__', '']) {
      const response = await stream.send(guess, ask('1'));
      expect([response.status, await codeOf(response)]).toEqual([404, 'NOT_FOUND']);
    }
  });

  test('expires when nobody comes for it, and frees what runs for it', async () => {
    await start({ access: { reservationSeconds: 3, streamsPerToken: 2 }, credentials: knownTokens });
    const { token } = await stream.reserve(bearerOne);
    expect((await stream.send(token, ask('1', watchRuns), bearerOne)).status).toBe(202);
    expect((await stream.reserve(bearerOne)).response.status).toBe(429);
    await expect
      .poll(async () => (await stream.reserve(bearerOne)).response.status, { timeout: 20_000 })
      .toBe(201);
    expect((await stream.connect(token, bearerOne)).response.status).toBe(404);
    // The place of the operation is free too.
    expect((await stream.reserve(bearerOne)).response.status).toBe(201);
  });

  test('is one of so many that a process has', async () => {
    await start();
    for (let i = 0; i < limits.reservedStreams; i += 100) {
      await Promise.all(Array.from({ length: 100 }, () => stream.reserve()));
    }
    const { response } = await stream.reserve();
    expect(response.status).toBe(429);
    expect(await response.json()).toMatchObject({
      errors: [{ extensions: { code: 'TOO_MANY_STREAMS', limit: limits.reservedStreams } }],
    });
  });

  test('carries so many operations', async () => {
    await start();
    const { token } = await stream.reserve();
    const { readUntil, leave } = await stream.connect(token);
    // Read all the time, or it would be refused as too slow.
    const read = readUntil('a text that never comes').catch(() => {});
    const watch = (id: number) => stream.send(token, ask(String(id), watchRuns));
    for (let i = 0; i < limits.operationsOfStream; i++) expect((await watch(i)).status).toBe(202);
    const refused = await watch(limits.operationsOfStream);
    expect([refused.status, await codeOf(refused)]).toEqual([429, 'TOO_MANY_STREAMS']);
    leave();
    await read;
  });

  test('is good for one connection at a time', async () => {
    await start();
    const { token } = await stream.reserve();
    const first = await stream.connect(token);
    expect(first.response.status).toBe(200);
    const second = await stream.connect(token);
    expect([second.response.status, await codeOf(second.response)]).toEqual([409, 'STREAM_CONFLICT']);
    expect((await stream.send(token, ask('1', watchRuns))).status).toBe(202);
    const again = await stream.send(token, ask('1'));
    expect([again.status, await codeOf(again)]).toEqual([409, 'STREAM_CONFLICT']);
    expect((await stream.complete(token, '1')).status).toBe(200);
    first.leave();
    await expect.poll(async () => (await stream.send(token, ask('2'))).status).toBe(404);
  });

  test('belongs to the credential that made it', async () => {
    await start({ credentials: knownTokens });
    const { token } = await stream.reserve(bearerOne);
    const two = bearerTwo;
    expect((await stream.send(token, ask('1'), two)).status).toBe(404);
    expect((await stream.connect(token, two)).response.status).toBe(404);
    expect((await stream.complete(token, '1', two)).status).toBe(404);
    expect((await stream.send(token, ask('1'))).status).toBe(401);
    expect((await stream.reserve()).response.status).toBe(401);
    expect((await stream.send(token, ask('1'), bearerOne)).status).toBe(202);
  });

  test('counts as a stream of its token, and so do its operations', async () => {
    await start({ credentials: knownTokens, access: { streamsPerToken: 2 } });
    const { token } = await stream.reserve(bearerOne);
    expect((await stream.send(token, ask('1', watchRuns), bearerOne)).status).toBe(202);
    const refused = await stream.send(token, ask('2', watchRuns), bearerOne);
    expect([refused.status, await codeOf(refused)]).toEqual([429, 'TOO_MANY_STREAMS']);
    const { response: unreserved } = await stream.reserve(bearerOne);
    expect(unreserved.status).toBe(429);
    for (const response of [refused, unreserved])
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    await stream.complete(token, '1', bearerOne);
    expect((await stream.send(token, ask('2', watchRuns), bearerOne)).status).toBe(202);
  });

  test('is refused to pages of other sites', async () => {
    await start({ credentials: knownTokens });
    const foreign = {
      ...sessionOne,
      'sec-fetch-site': 'cross-site',
      origin: 'https://evil.example',
    };
    expect((await stream.reserve(foreign)).response.status).toBe(403);
    const own = { ...sessionOne, 'sec-fetch-site': 'same-origin' };
    const { token } = await stream.reserve(own);
    expect((await stream.send(token, ask('1'), foreign)).status).toBe(403);
    expect((await stream.connect(token, foreign)).response.status).toBe(403);
    const connection = await stream.connect(token, own);
    expect(connection.response.status).toBe(200);
    expect((await stream.send(token, ask('1'), own)).status).toBe(202);
    expect(await connection.readUntil('event: complete')).toContain('"viewer":{"name":"local"}');
    connection.leave();
  });
});

test('a list of trusted documents holds here too', async () => {
  const who = 'query Who { viewer { name } }';
  await start({ access: { trustedDocuments: new Map([[documentHash(who), who]]) } });
  const { token } = await stream.reserve();
  const refused = await stream.send(token, ask('1'));
  expect([refused.status, await codeOf(refused)]).toEqual([403, 'DOCUMENT_NOT_TRUSTED']);
  expect(
    (await stream.send(token, { documentId: documentHash(who), extensions: { operationId: '1' } })).status,
  ).toBe(202);
  const connection = await stream.connect(token);
  expect(await connection.readUntil('event: complete')).toContain('"viewer":{"name":"local"}');
  connection.leave();
});

test('forms cannot send operations, and mutations do not come by GET', async () => {
  await start();
  const { token } = await stream.reserve();
  const form = await fetch(`${stream.url}?token=${token}`, {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: JSON.stringify(ask('1')),
  });
  expect([form.status, await codeOf(form)]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
  const query = encodeURIComponent('mutation { cancelRun(runId: "run_x") { __typename } }');
  const got = await fetch(`${stream.url}?token=${token}&query=${query}&extensions={"operationId":"1"}`);
  expect([got.status, await codeOf(got)]).toEqual([405, 'METHOD_NOT_ALLOWED']);
});
