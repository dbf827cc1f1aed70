import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type * as client from '../../src/client/index.ts';
import { toPublicId } from '../../src/domain/ids.ts';
import { adminToken, bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';

let browser: Browser;
let server: GuardedServer;
let script: string;
beforeAll(async () => {
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  server = await startGuardedServer();
  const entry = fileURLToPath(new URL('../../src/client/index.ts', import.meta.url));
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: 'browser',
    format: 'iife',
    globalName: 'runplane',
  });
  script = outputFiles[0]?.text ?? '';
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

declare const runplane: typeof client;

test('a page of the server follows a run with its session, and is told when that is over', async () => {
  const { plane } = server;
  await plane.agent('a');
  await plane.job('one', ['a']);
  const after = await plane.services.changeLog.currentCursor();
  const runId = toPublicId('run', await plane.launch('one'));
  const page = await browser.newPage();
  await page.goto(`${server.http.url}/healthz`);
  await page.addScriptTag({ content: script });
  const follow = () =>
    page.evaluate(
      async ({ id, cursor }) => {
        const statuses: string[] = [];
        const states: string[] = [];
        const options = { url: '/graphql', after: cursor, filter: { ids: [id] } };
        try {
          for await (const { changes } of runplane.watchRunChanges({
            ...options,
            onState: (state) => states.push(state),
          }))
            statuses.push(...changes.map(({ toStatus }) => toStatus));
        } catch (error) {
          if (!(error instanceof runplane.WatchError)) throw error;
          statuses.push(error.code ?? '');
        }
        return { statuses, states };
      },
      { id: runId, cursor: after },
    );
  expect(await follow()).toEqual({ statuses: ['UNAUTHENTICATED'], states: [] });

  await page.evaluate((headers) => fetch('/session', { method: 'POST', headers }), bearer(adminToken));
  const following = follow();
  for (const task of await plane.claim(['a'])) await plane.report(task, { status: 'COMPLETED' });
  expect(await following).toEqual({ statuses: ['QUEUED', 'RUNNING', 'COMPLETED'], states: ['live'] });
});
