import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

// Debian's own Postgres: the oldest version that is supported, with an unusual default that applications set.
const bin = '/usr/lib/postgresql/15/bin';
let directory: string;
let url: string;

/** Postgres refuses root: as root its programs run as the user that Debian made for it. */
const as = (command: string, args: string[]): [string, string[]] =>
  process.getuid?.() === 0
    ? ['setpriv', ['--reuid=postgres', '--regid=postgres', '--clear-groups', command, ...args]]
    : [command, args];
const run = (command: string, args: string[]) =>
  execFileSync(...as(command, args), { stdio: 'ignore', cwd: '/' });

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'runplane-pg15-'));
  if (process.getuid?.() === 0) execFileSync('chown', ['postgres', directory]);
  chmodSync(directory, 0o700);
  const free = createServer().listen(0, '127.0.0.1');
  await once(free, 'listening');
  const { port } = free.address() as AddressInfo;
  free.close();
  const data = join(directory, 'data');
  run(join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust']);
  const settings = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${directory} -c 'default_transaction_isolation=repeatable read'`;
  run(join(bin, 'pg_ctl'), ['-D', data, '-l', join(directory, 'log'), '-w', '-o', settings, 'start']);
  url = `postgres://postgres@127.0.0.1:${port}/postgres`;
});

afterAll(() => {
  spawnSync(...as(join(bin, 'pg_ctl'), ['-D', join(directory, 'data'), '-m', 'fast', 'stop']), {
    stdio: 'ignore',
  });
  rmSync(directory, { recursive: true, force: true });
});

test('everything that works on the embedded Postgres works on Postgres 15 with repeatable read as its default', async () => {
  const env = { ...process.env, RUNPLANE_TEST_TIER: 'test', TEST_DATABASE_URL: url };
  const suite = spawn(
    process.execPath,
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      'test/flow',
      'test/changelog',
      'test/dispatch',
      'test/operator',
      'test/read',
    ],
    { env },
  );
  let output = '';
  for (const stream of [suite.stdout, suite.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(suite, 'exit')) as [number | null];
  expect(code, output).toBe(0);
}, 300_000);
