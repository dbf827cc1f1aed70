import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { bearerOne, knownTokens, sessionOne } from '../support/known-tokens.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
afterEach(() => server.stop());
const get = (headers: Record<string, string> = {}) => fetch(`${server.http.url}/graphiql`, { headers });

/** What the browser executes of a page. */
const scriptOf = (html: string): string =>
  html.slice(html.indexOf('<script>') + 8, html.lastIndexOf('</script>'));
const hashOf = (script: string): string => `'sha256-${createHash('sha256').update(script).digest('base64')}'`;

test('the editor is a page that needs nothing but itself and the API', async () => {
  server = await startTestServer({ credentials: knownTokens });
  const response = await get(sessionOne);
  expect(response.status).toBe(200);
  const html = await response.text();
  const policy = response.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain(`script-src ${hashOf(scriptOf(html))};`);
  expect(policy).toContain("connect-src 'self'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/https?:/);
  expect(html.slice(0, html.indexOf('<script>')) + html.slice(html.lastIndexOf('</script>'))).not.toMatch(
    /(src|href)="?https?:/,
  );
});

test('the editor has a tab for every file of examples, and none for what programs send', async () => {
  server = await startTestServer();
  const html = await (await get()).text();
  const folder = new URL('../../schema/operations/', import.meta.url);
  const [examples, others] = [true, false].map((wanted) =>
    readdirSync(folder).filter((file) => file.startsWith('example-') === wanted),
  );
  const isInPage = (file: string) =>
    html.includes(JSON.stringify(readFileSync(new URL(file, folder), 'utf8')));
  expect(examples?.length).toBeGreaterThan(4);
  expect(examples?.filter((file) => !isInPage(file))).toEqual([]);
  expect(others?.filter(isInPage)).toEqual([]);
});

test('who is not signed in gets a page to sign in with', async () => {
  server = await startTestServer({ credentials: knownTokens });
  const strangers: Record<string, string>[] = [
    {},
    { cookie: 'runplane_session=guessed' },
    { authorization: 'Bearer guessed' },
  ];
  for (const headers of strangers) {
    const response = await get(headers);
    expect(response.status).toBe(401);
    const html = await response.text();
    expect(html).toContain('type="password"');
    expect(html.length).toBeLessThan(5000);
    expect(response.headers.get('content-security-policy')).toContain(hashOf(scriptOf(html)));
  }
  expect((await get(bearerOne)).status).toBe(200);
});

test('the page that a browser has is not sent again', async () => {
  server = await startTestServer();
  const response = await get();
  await response.text();
  const again = await get({ 'if-none-match': response.headers.get('etag') ?? '' });
  expect(again.status).toBe(304);
});
