import { SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';
import { type IdentityProvider, startIdentityProvider } from '../support/identity-provider.ts';

let provider: IdentityProvider;
let server: GuardedServer;
const audience = 'runplane';
beforeAll(async () => {
  provider = await startIdentityProvider(audience);
  server = await startGuardedServer({ external: { issuer: provider.issuer, audience, scopeClaim: 'scope' } });
});
afterAll(async () => {
  await server.stop();
  await provider.stop();
});

afterEach(() => vi.useRealTimers());

const question = '{ viewer { name scopes } }';
const answer = async (token: string) => {
  const { status, body } = await server.send(question, bearer(token));
  return status === 200 ? body.data.viewer : status;
};
const seconds = (fromNow: number): number => Math.floor(Date.now() / 1000) + fromNow;

test('a token of the identity provider signs in with the scopes of its claim', async () => {
  const words = await provider.sign({ scope: 'openid runplane:read LAUNCH unknown' });
  expect(await answer(words)).toEqual({ name: 'alice', scopes: ['READ', 'LAUNCH'] });
  expect(await answer(await provider.sign({ scope: ['PAYLOAD_READ'] }))).toEqual({
    name: 'alice',
    scopes: ['PAYLOAD_READ'],
  });
  expect(await answer(await provider.sign({}))).toEqual({ name: 'alice', scopes: [] });
  expect(provider.keyRequests()).toBe(1);
});

test('a key that the provider signs with since is looked up, at most every 30 s', async () => {
  const before = provider.keyRequests();
  await provider.rotate();
  const token = await provider.sign({ scope: 'READ' });
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31_000 });
  expect(await answer(token)).toEqual({ name: 'alice', scopes: ['READ'] });
  await provider.rotate();
  expect(await answer(await provider.sign({ scope: 'READ' }))).toBe(401);
  expect(provider.keyRequests()).toBe(before + 1);
  vi.setSystemTime(Date.now() + 31_000);
  expect(await answer(await provider.sign({ scope: 'READ' }))).toEqual({ name: 'alice', scopes: ['READ'] });
});

test('every fault of a token is the same 401', async () => {
  const good = await provider.sign({ scope: 'READ' });
  const [header, payload, signature] = good.split('.');
  const claims = { iss: provider.issuer, aud: audience, sub: 'mallory', exp: seconds(3600), scope: 'ADMIN' };
  const tokens = [
    await provider.sign({ aud: 'another' }),
    await provider.sign({ iss: 'http://127.0.0.1:1' }),
    await provider.sign({ exp: seconds(-10) }),
    await provider.sign({ nbf: seconds(60) }),
    await provider.sign({ exp: undefined }),
    await provider.sign({ sub: undefined }),
    await provider.sign({ scope: 'ADMIN' }, 'a key that it never had'),
    `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`,
    `${header}.${payload}.`,
    new UnsecuredJWT(claims).encode(),
    // Signed with what everybody knows, as if it were a shared secret.
    await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.from(provider.issuer.padEnd(64))),
  ];
  const bodies = new Set<string>();
  for (const token of tokens) {
    const { status, body } = await server.send(question, bearer(token));
    expect(status).toBe(401);
    bodies.add(JSON.stringify(body));
  }
  expect(bodies.size).toBe(1);
});

test('a session that it opened ends with it', async () => {
  const token = await provider.sign({ scope: 'READ', exp: seconds(300) });
  const opened = await fetch(`${server.http.url}/session`, { method: 'POST', headers: bearer(token) });
  const [cookie = '', ...attributes] = (opened.headers.get('set-cookie') ?? '').split('; ');
  expect(
    Number(attributes.find((attribute) => attribute.startsWith('Max-Age='))?.slice(8)),
  ).toBeLessThanOrEqual(300);
  const { body } = await server.send(question, { cookie });
  expect(body.data.viewer).toEqual({ name: 'alice', scopes: ['READ'] });
});

test('while the provider cannot be asked, its tokens are unavailable, not wrong; afterwards they are good', async () => {
  const other = await startIdentityProvider(audience);
  const cold = await startGuardedServer({
    external: { issuer: other.issuer, audience, scopeClaim: 'roles' },
  });
  const token = await other.sign({ roles: ['WORK'] });
  other.up(false);
  const down = await cold.send(question, bearer(token));
  expect([down.status, down.body.errors?.[0]?.extensions.code]).toEqual([503, 'UNAVAILABLE']);
  other.up(true);
  expect(await cold.as(token, question)).toEqual({ viewer: { name: 'alice', scopes: ['WORK'] } });
  await cold.stop();
  await other.stop();
});
