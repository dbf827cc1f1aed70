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
