import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { createTestDatabase } from '../support/database.ts';
import { copyDependencies, unpackProduct } from '../support/packed.ts';
import { startProcess } from '../support/processes.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'runplane-command-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

test('called without a command it lists all of them, and each has a help of its own', async () => {
  const { code, stdout } = await runCommand([]);
  expect(code).toBe(0);
  expect(await runCommand(['--help'])).toMatchObject({ code, stdout });
  const names = [...stdout.matchAll(/^ {2}([a-z]+(?: [a-z]+)?) {2,}\S/gm)].map(([, name = '']) => name);
  expect(names).toEqual(expect.arrayContaining(['start', 'demo']));
  for (const name of names) {
    const help = await runCommand([...name.split(' '), '--help']);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toMatch(`usage: runplane ${name}`);
  }
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
  expect(await runCommand(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` });
});

test.each([
  ['a command that there is not', ['strat'], 'There is no command "strat".'],
  ['an option that there is not', ['demo', '--fast'], "Unknown option '--fast'"],
  ['a word too many', ['start', 'now'], 'now'],
])('%s is refused with exit code 2', async (_, args, message) => {
  const { code, stdout, stderr } = await runCommand(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
  expect(stderr).toContain('--help');
});

test('installed from the packed package, without what it is developed with, it applies a manifest and runs the server from a folder of others', async () => {
  // What is compiled for other programs is not needed, and would be written by two tests at once.
  const installed = await unpackProduct(directory, '--ignore-scripts');
  await copyDependencies(directory);
  // Neither is for the command: tsx would take both to translate by.
  await writeFile(join(directory, 'tsconfig.json'), '{ "compilerOptions": { "target": "es5" } ');
  await writeFile(join(directory, 'package.json'), '{ "type": "commonjs" }');
  const database = await createTestDatabase();
  const apply = ['apply', '-f', '-', '--dry-run'];
  const manifest = { env: { DATABASE_URL: database.url }, input: 'pools: [{ name: p, slotsPerReplica: 1 }]' };
  expect(
    await runCommand(apply, { ...manifest, cwd: directory, program: join(installed, 'bin/runplane.js') }),
  ).toMatchObject({ code: 0, stdout: expect.stringContaining('+ create    pool     p') });
  const server = await startProcess(
    join(installed, 'bin/runplane.js'),
    ['start'],
    /runplane ready on http/,
    { DATABASE_URL: database.url, RUNPLANE_PORT: '0' },
    directory,
  );
  expect(await server.end('SIGTERM')).toBe(0);
  await database.drop();
}, 120_000);
