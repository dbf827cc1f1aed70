import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { toPublicId } from '../../src/domain/ids.ts';
import { bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';
import { writeLate } from '../support/late-writers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { count } from '../support/tier.ts';
import { expectEachOnce, loggedIds, startWatching } from '../support/watching.ts';

let server: GuardedServer;
let proxy: TcpProxy;
let url: string;
let token: { id: string; secret: string };
beforeEach(async () => {
  server = await startGuardedServer();
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
  proxy = await startTcpProxy(server.http.url);
  url = `${proxy.url}/graphql`;
  token = await server.token({});
});
afterEach(async () => {
  await proxy.stop();
  await server.stop();
});

const launch = async () => toPublicId('run', await server.plane.launch('one'));
const watch = (timing = {}, after: string | null = null) =>
  startWatching({ url, token: token.secret, after }, { answerMs: 2_000, ...timing });

describe('when bytes stop though the connection is open', () => {
  const short = { silentMs: 500, answerMs: 1_000, pollMs: 200 };

  test('it polls, says so, and returns to the stream when that gets through', async () => {
    const watching = watch(short);
    await watching.untilState('live');
    proxy.set('SWALLOW_STREAMS');
    const swallowed = await launch();
    await watching.until(swallowed);
    await watching.untilState('polling');
    expect(watching.causes.at(-1)).toBeInstanceOf(Error);
    const polled = await launch();
    await watching.until(polled);
    expect(watching.states.at(-1)).toBe('polling');
    proxy.set('PASS');
    await watching.untilState('live');
    await watching.until(await launch());
    await watching.stop();
    expect(watching.states).not.toContain('stale');
    expectEachOnce(watching.changes, await loggedIds(server.plane));
  });

  test('it is stale when polls do not get through either, and misses nothing of that time', async () => {
    const watching = watch(short);
    await watching.untilState('live');
    proxy.set('SWALLOW_ALL');
    await watching.untilState('stale');
    const missed = await launch();
    proxy.set('PASS');
    await watching.until(missed);
    await watching.untilState('live');
    await watching.stop();
    expectEachOnce(watching.changes, await loggedIds(server.plane));
  });
});

test('a break that the first reconnect mends is no change of the state', async () => {
  const watching = watch();
  await watching.untilState('live');
  for (let i = 0; i < 5; i++) {
    proxy.cut();
    await watching.until(await launch());
  }
  await watching.stop();
  expect(watching.states).toEqual(['live']);
  expectEachOnce(watching.changes, await loggedIds(server.plane));
});

test('a token that was revoked is thrown, with the cursor to go on after', async () => {
  const watching = watch();
  await watching.untilState('live');
  await watching.until(await launch());
  await server.revoke(token.id);
  await launch();
  const error = await watching.over;
  expect(error).toMatchObject({ name: 'WatchError', code: 'UNAUTHENTICATED', cursor: watching.cursor });
  expect(watching.changes).toHaveLength(1);

  token = await server.token({});
  const next = watch({}, watching.cursor);
  await next.until(await launch());
  await next.stop();
  // What came last may come again, while transactions are open that may have written before it.
  const told = new Set([...watching.changes, ...next.changes].map(({ runId }) => runId));
  expect([...told]).toEqual(
    (await server.plane.rows<{ id: string }>('select id from runplane.runs order by id')).map(({ id }) =>
      toPublicId('run', id),
    ),
  );
});

test('a token that may not read is thrown', async () => {
  token = await server.token({ scopes: ['WORK'] });
  expect(await watch().over).toMatchObject({ code: 'FORBIDDEN' });
  token.secret = 'nobody-has-it';
  expect(await watch().over).toMatchObject({ code: 'UNAUTHENTICATED', cursor: null });
});

test('a token that has all its streams polls, and streams when one is free', async () => {
  const others = Array.from({ length: 100 }, () =>
    fetch(server.url, {
      method: 'POST',
      headers: {
        ...bearer(token.secret),
        'content-type': 'application/json',
        accept: 'text/event-stream',
      },
      body: JSON.stringify({ query: 'subscription { runStatusChanged { cursor } }' }),
    }),
  );
  const open = await Promise.all(others);
  const watching = watch({ pollMs: 200 });
  await watching.untilState('polling');
  await watching.until(await launch());
  for (const { body } of open) await body?.cancel();
  await watching.untilState('live');
  await watching.stop();
  expectEachOnce(watching.changes, await loggedIds(server.plane));
});

test('over random disconnects with writers that commit late nothing is missed and nothing comes twice', async () => {
  const watching = [0, 1, 2].map(() => watch({ silentMs: 500, pollMs: 100, answerMs: 1_000 }));
  await Promise.all(watching.map((each) => each.untilState('live')));
  const runId = await server.plane.launch('one');
  const writers = await writeLate(server.plane, runId, {
    writers: 4,
    perWriter: count({ test: 100, soak: 5_000 }),
  });
  let writing = true;
  const written = writers.done.finally(() => {
    writing = false;
  });
  let cuts = 0;
  for (; writing; cuts++) {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
    if (Math.random() < 0.7) proxy.cut();
    else proxy.set((['PASS', 'PASS', 'SWALLOW_STREAMS', 'SWALLOW_ALL'] as const)[cuts % 4] ?? 'PASS');
  }
  await written;
  proxy.set('PASS');
  const last = await launch();
  await Promise.all(watching.map((each) => each.until(last)));
  const ids = await loggedIds(server.plane);
  await writers.cleanUp();
  expect(ids).toHaveLength(writers.total + 2);
  for (const each of watching) {
    await each.stop();
    expectEachOnce(each.changes, ids);
  }
  expect(cuts).toBeGreaterThan(5);
}, 120_000);
