import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = new URL('../../', import.meta.url).pathname;
const served = readFileSync(join(root, 'schema/schema.graphql'), 'utf8');

/** A repository with what a release and its check need of this one, where nothing was released. */
let project: string;
const inProject = (path: string): string => join(project, path);

function run(command: string, ...args: string[]): { status: number | null; said: string } {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: project,
    encoding: 'utf8',
    env: {
      ...process.env,
      ...Object.fromEntries(
        ['AUTHOR', 'COMMITTER'].flatMap((who) => [
          [`GIT_${who}_NAME`, 'releaser'],
          [`GIT_${who}_EMAIL`, 'releaser@example.com'],
        ]),
      ),
    },
  });
  return { status, said: stdout + stderr };
}

const succeed = (command: string, ...args: string[]): string => {
  const { status, said } = run(command, ...args);
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${said}`);
  return said;
};
const check = (schema: string) => {
  writeFileSync(inProject('schema/schema.graphql'), schema);
  return run('npm', 'run', '--silent', 'check:breaking');
};
const publish = () => run('npm', 'run', '--silent', 'prepublishOnly');

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'released-'));
  for (const folder of ['schema', 'src/cli']) mkdirSync(inProject(folder), { recursive: true });
  for (const file of ['package.json', '.gitignore', 'schema/schema.graphql', 'src/cli/check-breaking.ts']) {
    copyFileSync(join(root, file), inProject(file));
  }
  symlinkSync(join(root, 'node_modules'), inProject('node_modules'));
  succeed('git', 'init', '--quiet');
  succeed('git', 'add', 'package.json', 'schema', 'src');
  succeed('git', 'commit', '--quiet', '--message', 'before');
});
afterAll(() => rmSync(project, { recursive: true }));

test('npm run check looks for breaking changes', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  expect(scripts.check?.split(' && ')).toContain('npm run check:breaking');
});

test('as long as nothing is released every schema passes, and that is said; nothing is published so', () => {
  const { status, said } = check('type Query { nothing: Int }');
  expect(status).toBe(0);
  expect(said).toContain('nothing is released yet');
  expect(publish().status).toBe(1);
  succeed('git', 'checkout', '--', 'schema');
});

test('a release keeps its schema in its commit, and what follows must not break it', {
  timeout: 60_000,
}, () => {
  succeed('npm', 'version', 'minor');
  expect(succeed('git', 'show', 'HEAD:schema/released.graphql')).toBe(served);
  expect(succeed('git', 'tag')).toMatch(/^v\d+\.\d+\.0\n$/);
  expect(publish()).toEqual({ status: 0, said: '' });

  expect(check(served)).toEqual({ status: 0, said: '' });
  const more = served.replace('type Query {', 'type Query {\n  more: String');
  expect(check(more)).toEqual({ status: 0, said: '' });
  const renamed = check(served.replace('changeLogCursor: Cursor!', 'position: Cursor!'));
  expect(renamed.status).toBe(1);
  expect(renamed.said).toContain('changeLogCursor');
  expect(publish().said).toContain('npm version');

  // The next release is compared with in its turn.
  expect(check(more).status).toBe(0);
  succeed('git', 'commit', '--all', '--quiet', '--message', 'more');
  succeed('npm', 'version', 'minor');
  const { status, said } = check(served);
  expect(status).toBe(1);
  expect(said).toContain('more');
});
