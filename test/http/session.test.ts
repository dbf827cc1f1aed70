import { afterAll, beforeAll, expect, test } from 'vitest';
import { CredentialStore } from '../../src/credentials/credentials.ts';
import { limits } from '../../src/domain/limits.ts';
import { adminToken, bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';
import { startTestServer } from '../support/server.ts';

let server: GuardedServer;
let session: string;
beforeAll(async () => {
  server = await startGuardedServer();
  session = `${server.http.url}/session`;
});
afterAll(() => server.stop());

const signIn = (headers: Record<string, string>, body?: object) =>
  fetch(session, {
    method: 'POST',
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });

/** Name and value of the cookie that an answer sets, and its attributes. */
function cookieIn(response: Response): { cookie: string; attributes: string[] } {
  const [cookie = '', ...attributes] = (response.headers.get('set-cookie') ?? '').split('; ');
  return { cookie, attributes };
}

const who = async (cookie: string) => {
  const { status, body } = await server.send('{ viewer { name scopes } }', { cookie });
  return status === 200 ? body.data.viewer : status;
};

test('a token becomes a cookie that scripts cannot read and other sites cannot send', async () => {
  const { secret } = await server.token({ name: 'reader' });
  for (const response of [await signIn(bearer(secret)), await signIn({}, { token: secret })]) {
    expect(response.status).toBe(204);
    const { cookie, attributes } = cookieIn(response);
    expect(attributes).toEqual(['Path=/', 'HttpOnly', 'SameSite=Strict', 'Max-Age=43200']);
    expect(cookie).not.toContain(secret.slice(30));
    expect(await who(cookie)).toEqual({ name: 'reader', scopes: ['READ'] });
    expect(await who(`theme=dark; ${cookie}; other=1`)).toEqual({ name: 'reader', scopes: ['READ'] });
  }
  const kept = await server.plane.rows<{ text: string }>('select s::text as text from runplane.sessions s');
  expect(JSON.stringify(kept)).not.toContain(secret.slice(30));
});

test.each([
  ['x-forwarded-proto', 'https'],
  ['x-forwarded-proto', 'https, http'],
  ['forwarded', 'for=1.2.3.4;proto=https;host=x'],
])('it is Secure where the client came by TLS (%s: %s)', async (name, value) => {
  const { attributes } = cookieIn(await signIn({ ...bearer(adminToken), [name]: value }));
  expect(attributes).toContain('Secure');
});

test('a session is open until it is closed', async () => {
  const { cookie } = cookieIn(await signIn(bearer(adminToken)));
  expect(await who(cookie)).toMatchObject({ name: 'admin' });
  const closed = await fetch(session, { method: 'DELETE', headers: { cookie } });
  expect(closed.status).toBe(204);
  expect(cookieIn(closed)).toMatchObject({
    cookie: 'runplane_session=',
    attributes: expect.arrayContaining(['Max-Age=0']) as string[],
  });
  expect(await who(cookie)).toBe(401);
});

test('on another server on the same database a session that was closed is over within 30 s', async () => {
  let now = 0;
  const credentials = new CredentialStore({
    db: server.plane.services.db,
    adminToken,
    external: null,
    onError: () => {},
    clock: () => now,
  });
  const database = { ...server.plane.database, drop: async () => {} };
  const other = await startTestServer({ database, credentials });
  const whoThere = async (cookie: string) => {
    const response = await fetch(`${other.url}?query={viewer{name}}`, { headers: { cookie } });
    return response.status;
  };
  const { cookie } = cookieIn(await signIn(bearer(adminToken)));
  const { cookie: unseen } = cookieIn(await signIn(bearer(adminToken)));
  expect(await whoThere(cookie)).toBe(200);
  for (const each of [cookie, unseen]) {
    await fetch(session, { method: 'DELETE', headers: { cookie: each } });
    expect(await who(each)).toBe(401);
  }
  // What was not asked there is not remembered there.
  expect(await whoThere(unseen)).toBe(401);
  now = 24_999;
  expect(await whoThere(cookie)).toBe(200);
  now = 25_000;
  expect(await whoThere(cookie)).toBe(401);
  await other.stop();
  await credentials.stop();
});

test('a session dies with its token, and is no longer than it', async () => {
  const { id, secret } = await server.token({ expiresAt: new Date(Date.now() + 600_000) });
  const { cookie, attributes } = cookieIn(await signIn(bearer(secret)));
  const maxAge = Number(attributes.find((attribute) => attribute.startsWith('Max-Age='))?.slice(8));
  expect(maxAge).toBeGreaterThan(0);
  expect(maxAge).toBeLessThanOrEqual(600);
  expect(await who(cookie)).toMatchObject({ name: 'test' });
  await server.revoke(id);
  expect(await who(cookie)).toBe(401);
});

test('a session of the admin token ends when a server starts with another one', async () => {
  const { cookie } = cookieIn(await signIn(bearer(adminToken)));
  const value = cookie.slice(cookie.indexOf('=') + 1);
  const restarted = (token: string | null) =>
    new CredentialStore({
      db: server.plane.services.db,
      adminToken: token,
      external: null,
      onError: () => {},
    });
  expect(await restarted(adminToken).ofSession(value)).not.toBeNull();
  expect(await restarted('another-token-of-the-administrator').ofSession(value)).toBeNull();
  expect(await restarted(null).ofSession(value)).toBeNull();
});

test('what is over is deleted when others sign in', async () => {
  await signIn(bearer(adminToken));
  await server.plane.rows(`update runplane.sessions set expires_at = runplane.clock() - interval '1 second'`);
  await signIn(bearer(adminToken));
  expect(await server.plane.rows('select id from runplane.sessions')).toHaveLength(1);
});

test('a token has so many sessions, and another one ends its oldest', async () => {
  const { secret } = await server.token({ name: 'many' });
  const { secret: other } = await server.token({ name: 'other' });
  const { cookie: untouched } = cookieIn(await signIn(bearer(other)));
  const cookies: string[] = [];
  for (let i = 0; i <= limits.sessionsOfToken; i++)
    cookies.push(cookieIn(await signIn(bearer(secret))).cookie);
  const [first = '', second = ''] = cookies;
  expect(await who(first)).toBe(401);
  expect(await who(second)).toMatchObject({ name: 'many' });
  expect(await who(cookies.at(-1) ?? '')).toMatchObject({ name: 'many' });
  expect(await who(untouched)).toMatchObject({ name: 'other' });
});

test('a wrong token, another site and another method get no session', async () => {
  const refused = await signIn({}, { token: 'wrong' });
  expect(refused.status).toBe(401);
  expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="runplane"');
  expect((await signIn({ ...bearer(adminToken), 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  const form = await fetch(session, { method: 'POST', body: new URLSearchParams({ token: adminToken }) });
  expect(form.status).toBe(415);
  const url = await fetch(`${session}?token=${adminToken}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  expect(url.status).toBe(400);
  const get = await fetch(session);
  expect(get.status).toBe(405);
  expect(get.headers.get('allow')).toBe('POST, DELETE');
  for (const response of [refused, form, url, get]) expect(response.headers.get('set-cookie')).toBeNull();
});

test('where nobody is asked for a credential there is nothing to sign in to', async () => {
  const open = await startTestServer();
  const response = await fetch(`${open.http.url}/session`, { method: 'POST', headers: bearer('anything') });
  expect(response.status).toBe(204);
  expect(response.headers.get('set-cookie')).toBeNull();
  await open.stop();
});
