import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { CredentialStore } from '../../src/credentials/credentials.ts';
import { WatchedStream } from '../../src/graphql/watched-stream.ts';
import { setClockAhead } from '../support/clock.ts';
import { openEventStream } from '../support/event-stream.ts';
import { bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';
import { type IdentityProvider, startIdentityProvider } from '../support/identity-provider.ts';

// Nothing revokes the tokens of an identity provider: that they end by themselves is all that bounds them.
let provider: IdentityProvider;
let server: GuardedServer;
const audience = 'runplane';
const lifetimeSeconds = 300;
beforeAll(async () => {
  provider = await startIdentityProvider(audience);
  server = await startGuardedServer({ external: externalIssuer() });
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
});
afterAll(async () => {
  await server.stop();
  await provider.stop();
});
afterEach(() => vi.useRealTimers());

const externalIssuer = () => ({ issuer: provider.issuer, audience, scopeClaim: 'scope' });
const watch = 'subscription { runStatusChanged { changes { toStatus } } }';

/** A token, the last time at which it is good, and the first at which it is not. */
async function shortLived(): Promise<{ token: string; lastGoodMs: number; expiryMs: number }> {
  const exp = Math.floor(Date.now() / 1000) + lifetimeSeconds;
  const token = await provider.sign({ scope: 'READ WORK', exp });
  return { token, lastGoodMs: exp * 1000 - 1, expiryMs: exp * 1000 };
}

test('a stream of a token that expires shows what happens until then, and nothing later', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
  const { token, lastGoodMs, expiryMs } = await shortLived();
  const stream = await openEventStream(server.url, watch, bearer(token));
  await stream.next();
  vi.setSystemTime(lastGoodMs);
  await server.plane.launch('one');
  expect((await stream.next())?.data).toContain('QUEUED');
  vi.setSystemTime(expiryMs);
  await server.plane.launch('one');
  const end = await stream.next();
  expect(end?.data).toContain('"code":"UNAUTHENTICATED"');
  expect(end?.data).not.toContain('QUEUED');
  expect(await stream.next()).toMatchObject({ event: 'complete' });
  expect(await stream.next()).toBeNull();
});

test('a silent stream of a token that expires ends within a minute', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'], now: Date.now() });
  const { token, expiryMs } = await shortLived();
  const other = await provider.sign({ scope: 'READ' });
  const stream = await openEventStream(server.url, watch, bearer(token));
  const still = await openEventStream(server.url, watch, bearer(other));
  await stream.next();
  await still.next();
  vi.setSystemTime(expiryMs);
  vi.advanceTimersByTime(60_000);
  expect((await stream.next())?.data).toContain('"code":"UNAUTHENTICATED"');
  expect(await stream.next()).toMatchObject({ event: 'complete' });
  await server.plane.launch('one');
  expect((await still.next())?.data).toContain('QUEUED');
  still.leave();
});

test.each([
  [
    'claims',
    `mutation { claimTasks(input: { workerId: "w", agents: ["a"], limit: 1, waitSeconds: 25 }) {
       ... on ClaimTasksSuccess { assignments { taskId } } } }`,
  ],
  [
    'reads the change log',
    // What happened before may be told again: this waits for what never does.
    `{ runStatusChanges(filter: { correlationId: "of nobody" }, waitSeconds: 25) { changes { id toStatus } } }`,
  ],
])('who %s and waits gets nothing once the token is over', async (_, operation) => {
  for (const assignment of await server.plane.claim(['a'])) {
    await server.plane.report(assignment, { status: 'COMPLETED' });
  }
  vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'], now: Date.now() });
  const { token, expiryMs } = await shortLived();
  const waiting = server.send(operation, bearer(token));
  await expect.poll(() => vi.getTimerCount(), { timeout: 10_000 }).toBeGreaterThan(0);
  vi.setSystemTime(expiryMs);
  await vi.advanceTimersByTimeAsync(4_000);
  const { body } = await waiting;
  expect(body.errors?.[0]?.extensions).toMatchObject({ code: 'UNAUTHENTICATED' });
  expect(Object.values(body.data ?? {})).toEqual([null]);
});

test('a stream of a session that such a token opened ends when the token would have', async () => {
  const { token } = await shortLived();
  const { services, database } = server.plane;
  let now = 0;
  const store = new CredentialStore({
    db: services.db,
    adminToken: null,
    external: externalIssuer(),
    onError: () => {},
    clock: () => now,
  });
  const session = await store.openSession(token);
  const authority = await store.ofSession(session?.cookie ?? '');
  if (!authority) throw new Error('the session is not open');
  const stream = new WatchedStream(services.changeLog.runChanges({}, null), authority);
  await stream.next();
  const moveOn = async (seconds: number): Promise<void> => {
    now = seconds * 1000;
    await setClockAhead(database.db, `${seconds} seconds`);
  };
  await moveOn(lifetimeSeconds - 10);
  await server.plane.launch('one');
  expect((await stream.next()).value).toMatchObject({ changes: [{ toStatus: 'QUEUED' }] });
  await moveOn(lifetimeSeconds);
  await server.plane.launch('one');
  await expect(stream.next()).rejects.toMatchObject({ extensions: { code: 'UNAUTHENTICATED' } });
  await store.stop();
});
