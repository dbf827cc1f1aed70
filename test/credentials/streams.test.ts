import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { CredentialStore } from '../../src/credentials/credentials.ts';
import { WatchedStream } from '../../src/graphql/watched-stream.ts';
import { openEventStream } from '../support/event-stream.ts';
import { bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';
import { ask, StreamByHand } from '../support/stream-by-hand.ts';

let server: GuardedServer;
beforeAll(async () => {
  server = await startGuardedServer();
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
});
afterAll(() => server.stop());
afterEach(() => vi.useRealTimers());

const watch = 'subscription { runStatusChanged { changes { toStatus } } }';
const ended = [
  {
    data: '{"errors":[{"message":"The credential is not valid any more.","extensions":{"code":"UNAUTHENTICATED"}}]}',
    event: 'next',
    id: null,
  },
  { event: 'complete', id: null, data: '' },
  null,
];

test('a stream whose token was revoked ends before its next event, which it does not show', async () => {
  const { id, secret } = await server.token({});
  const stream = await openEventStream(server.url, watch, bearer(secret));
  expect((await stream.next())?.data).toContain('changes');
  await server.plane.launch('one');
  expect((await stream.next())?.data).toContain('QUEUED');
  await server.revoke(id);
  await server.plane.launch('one');
  expect([await stream.next(), await stream.next(), await stream.next()]).toEqual(ended);
});

test('elsewhere a stream shows what happens for 25 s more, and nothing later', async () => {
  const { id, secret } = await server.token({});
  const { services } = server.plane;
  // Another replica on the same database, whose clock the test moves.
  let now = 0;
  const store = new CredentialStore({
    db: services.db,
    adminToken: null,
    external: null,
    onError: () => {},
    clock: () => now,
  });
  const authority = await store.ofToken(secret);
  if (!authority) throw new Error('the token is not valid');
  const stream = new WatchedStream(services.changeLog.runChanges({}, null), authority);
  await stream.next();
  await server.revoke(id);
  now = 24_999;
  await server.plane.launch('one');
  expect((await stream.next()).value).toMatchObject({ changes: [{ toStatus: 'QUEUED' }] });
  now = 25_000;
  await server.plane.launch('one');
  await expect(stream.next()).rejects.toMatchObject({ extensions: { code: 'UNAUTHENTICATED' } });
  expect(await stream.next()).toEqual({ done: true, value: undefined });
  await store.stop();
});

test('a silent stream of a token that was revoked ends within a minute', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { id, secret } = await server.token({});
  const other = await server.token({});
  const stream = await openEventStream(server.url, watch, bearer(secret));
  const still = await openEventStream(server.url, watch, bearer(other.secret));
  await stream.next();
  await still.next();
  await server.revoke(id);
  vi.advanceTimersByTime(60_000);
  expect([await stream.next(), await stream.next(), await stream.next()]).toEqual(ended);
  await server.plane.launch('one');
  expect((await still.next())?.data).toContain('QUEUED');
  still.leave();
});

describe('a single connection whose token is revoked', () => {
  const connect = async () => {
    const { id, secret } = await server.token({});
    const stream = new StreamByHand(`${server.http.url}/graphql/stream`);
    const { token } = await stream.reserve(bearer(secret));
    return { id, secret, stream, token, opened: await stream.connect(token, bearer(secret)) };
  };

  test('ends each of its operations before the next event, and takes no other', async () => {
    const { id, secret, stream, token, opened } = await connect();
    await stream.send(token, ask('1', watch), bearer(secret));
    await opened.readUntil('changes');
    await server.revoke(id);
    await server.plane.launch('one');
    const text = await opened.readUntil('event: complete');
    expect(text).toContain('"code":"UNAUTHENTICATED"');
    expect(text).not.toContain('QUEUED');
    expect((await stream.send(token, ask('2'), bearer(secret))).status).toBe(401);
    opened.leave();
  });

  test('is closed within a minute when nothing goes on on it', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { id, opened } = await connect();
    await server.revoke(id);
    vi.advanceTimersByTime(60_000);
    // Nothing of the sort comes: it reads to the end.
    expect(await opened.readUntil('event: next')).not.toContain('event: next');
  });
});
