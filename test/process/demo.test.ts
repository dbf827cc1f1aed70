import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startProcess } from '../support/processes.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'runplane-demo-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const env = () => ({ RUNPLANE_DATA_DIR: join(directory, 'data'), RUNPLANE_PORT: '0' });

test('the demo publishes the examples, shows their changes, a trace and totals, and repeats nothing the second time', async () => {
  const first = await startProcess('bin/runplane.js', ['demo', '--exit'], /Where to go next/, env());
  expect(await first.ended).toBe(0);
  const output = first.output();
  expect(output).toMatch(/published \d\d events, which launched \d\d runs/);
  expect(output).toMatch(/refused {3}.*\(.*\)/);
  expect(output).toMatch(/repeated/);
  expect(output).toMatch(/knowledge_embedding\.dataset +PROCESSING -> COMPLETED/);
  expect(output).toMatch(/Trace of correlation id/);
  expect(output).toMatch(/embedding_dataset from embedding_record/);
  expect(output).toMatch(/tokens +[1-9]\d+/);
  expect(output).toMatch(/unpriced attempts +[1-9]/);
  const [, runs] = /runs +(\d+) \((\d+) completed\)/.exec(output) ?? [];
  expect(output).toContain(`runs                ${runs} (${runs} completed)`);

  const second = await startProcess('bin/runplane.js', ['demo', '--exit'], /Where to go next/, env());
  expect(await second.ended).toBe(0);
  expect(second.output().match(/repeated/g)?.length).toBeGreaterThan(1);
}, 120_000);

test('the demo keeps serving until ctrl-C', async () => {
  const demo = await startProcess('bin/runplane.js', ['demo'], /Still serving/, env());
  const url = /runplane ready on (http:\S+)/.exec(demo.output())?.[1];
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  expect(await demo.end('SIGINT')).toBe(0);
}, 120_000);
