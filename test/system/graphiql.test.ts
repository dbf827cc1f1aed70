import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminToken, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';

let browser: Browser;
let server: GuardedServer;
beforeAll(async () => {
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  server = await startGuardedServer();
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

test('a person signs in, and uses the editor without any other server', async () => {
  const page = await browser.newPage();
  const elsewhere: string[] = [];
  const faults: string[] = [];
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(server.http.url))
      elsewhere.push(request.url());
  });
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    if (message.text().includes('Content Security Policy')) faults.push(message.text());
  });

  await page.goto(`${server.http.url}/graphiql`);
  await page.fill('#token', 'nobody-has-this-token');
  await page.click('button');
  await page.getByText('The token is not valid.').waitFor();
  await page.fill('#token', adminToken);
  await page.click('button');

  await page.locator('.graphiql-container').first().waitFor();
  // The schema has arrived when its documentation is there.
  await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
  await page.getByText('Mutation', { exact: true }).first().waitFor();

  await page.goto(`${server.http.url}/graphiql?query=${encodeURIComponent('{ viewer { name } }')}`);
  await page.getByRole('button', { name: /^Execute query/ }).click();
  await page.locator('.result-window').getByText('admin').waitFor();
  const streamed = page.waitForResponse(
    (response) => response.headers()['content-type']?.includes('event-stream') === true,
  );
  await page.goto(
    `${server.http.url}/graphiql?query=${encodeURIComponent('subscription { taskStatusChanged { caughtUp } }')}`,
  );
  await page.getByRole('button', { name: /^Execute query/ }).click();
  expect((await streamed).status()).toBe(200);
  await page.locator('.result-window').getByText('caughtUp').waitFor();

  expect(faults).toEqual([]);
  expect(elsewhere).toEqual([]);
});

/** A page with a session of its own. */
async function signedInPage() {
  const page = await browser.newPage();
  await page.goto(`${server.http.url}/graphiql`);
  await page.fill('#token', adminToken);
  await page.click('button');
  await page.locator('.graphiql-container').first().waitFor();
  return page;
}

test('a page subscribes with the EventSource of the browser and its session', async () => {
  const page = await signedInPage();
  const lastEventId = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const query = encodeURIComponent('subscription { taskStatusChanged { cursor } }');
        const source = new EventSource(`/graphql?query=${query}`);
        source.addEventListener('next', (event) => {
          source.close();
          resolve(event.lastEventId);
        });
        source.onerror = () => resolve(null);
      }),
  );
  expect(lastEventId).toEqual(expect.stringMatching(/./));
});

test('a page of another site gets nothing done in the name of who is signed in', async () => {
  const evil = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>evil</title>');
  }).listen(0, 'localhost');
  await once(evil, 'listening');
  const page = await signedInPage();
  // For a browser localhost and 127.0.0.1 are different sites.
  await page.goto(`http://localhost:${(evil.address() as AddressInfo).port}/`);
  const statuses: number[] = [];
  page.on('response', (response) => statuses.push(response.status()));
  await page.evaluate(async (url) => {
    const mutation = JSON.stringify({ query: 'mutation { cancelRuns(filter: {}) { __typename } }' });
    const tries: [string, RequestInit][] = [
      ['/graphql', { method: 'POST', body: mutation }],
      ['/graphql', { method: 'POST', body: new URLSearchParams({ query: mutation }) }],
      ['/graphql?query={viewer{name}}', {}],
      ['/graphql/stream', { method: 'POST', body: mutation }],
      ['/session', { method: 'POST', body: '{}' }],
    ];
    for (const [path, init] of tries) {
      await fetch(url + path, { mode: 'no-cors', credentials: 'include', ...init }).catch(() => null);
    }
  }, server.http.url);
  expect(statuses).toEqual([403, 403, 403, 403, 403]);
  evil.close();
});
