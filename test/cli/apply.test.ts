import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readManifest } from '../../src/cli/manifest/read-manifest.ts';
import { systemUser } from '../../src/cli/system-user.ts';
import { type CommandOutcome, runCommand } from '../support/command.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { createTestDatabase } from '../support/database.ts';
import { startProcess } from '../support/processes.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

let directory: string;
let plane: ControlPlane;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'runplane-apply-'));
  plane = await ControlPlane.start();
});
afterAll(async () => {
  await plane.stop();
  await rm(directory, { recursive: true, force: true });
});

const command = (args: string[], input = ''): Promise<CommandOutcome> =>
  runCommand(args, { env: { DATABASE_URL: plane.database.url }, input, cwd: directory });
const write = (name: string, text: string): Promise<void> => writeFile(join(directory, name), text);

test('the example of the documentation is applied, told, audited, exported, and the second time unchanged', async () => {
  const [, example = ''] = /```yaml\n([\s\S]*?)```/.exec(await readFile('docs/manifest.md', 'utf8')) ?? [];
  await write('runplane.yaml', example);
  const dry = await command(['apply', '--file', 'runplane.yaml', '--dry-run']);
  expect(dry).toMatchObject({ code: 0, stderr: '' });
  expect(dry.stdout).toContain('8 created, if it were applied: this was a dry run.');
  expect(await plane.rows('select name from runplane.routes')).toEqual([]);

  const first = await command(['apply', '-f', 'runplane.yaml']);
  expect(first).toMatchObject({ code: 0, stderr: '' });
  expect(first.stdout.split('\n').slice(0, 8)).toEqual(dry.stdout.split('\n').slice(0, 8));
  const name = `${userInfo().username}@${hostname()}`;
  const [, requestId = ''] =
    new RegExp(`8 created, by ${name} as request (\\S+)\\.`).exec(first.stdout) ?? [];
  const audit =
    'select distinct actor, request_id as "requestId", count(*) over () as entries from runplane.audit_entries';
  expect(await plane.rows(audit)).toEqual([{ actor: name, requestId, entries: 8 }]);

  const second = await command(['apply', '-f', '-'], example);
  expect(second).toMatchObject({ code: 0, stderr: '' });
  expect(second.stdout).toMatch(/^(= unchanged .*\n){8}8 unchanged\.\n$/);
  const changed = await command(
    ['apply', '-f', '-', '--actor', 'deploy 7'],
    example.replace('maxConcurrentTasks: 10', 'maxConcurrentTasks: 12'),
  );
  expect(changed.stdout).toContain(
    '~ update    agent    summarizer (version 1 -> 2)\n      maxConcurrentTasks: 10 -> 12\n',
  );
  expect(
    await plane.rows(`select actor, action, target from runplane.audit_entries order by id desc limit 1`),
  ).toEqual([{ actor: 'deploy 7', action: 'agent.save', target: 'summarizer' }]);

  const exported = await command(['export']);
  expect(exported).toMatchObject({ code: 0, stderr: '' });
  const again = await command(['apply', '-f', '-', '--prune'], exported.stdout);
  expect(again).toMatchObject({ code: 0, stderr: '' });
  expect(again.stdout).toMatch(/^(= unchanged .*\n)+\d+ unchanged\.\n$/);
}, 120_000);

test('every problem is told with its line and path, wherever it is found', async () => {
  await write(
    'wrong.yaml',
    `throttles:
  - name: t
    maxConcurrentTasks: many
    maxTokens: 1
agents:
  - name: a
    dispatch:
      pull: {}
      inline: { handler: h }
  - name: b
    dispatch: { pull: {} }
    paused: maybe
    throttles: [t]
  - dispatch: { pull: {} }
    leaseSeconds: 60
  - name: c
    dispatch: { pull: {} }
    queue: nowhere
    leaseSeconds: 1
  - name: d
    dispatch: { pull: {} }
    queue: nowhere
jobs:
  - name: j
    steps:
      - name: s
        agent: a
        when: SOMETIMES
routes:
  - name: r
    topic: x
    job: j
    config:
      n:
        $eval: 1 +
    labels: { k: '\${' }
agent: []
`,
  );
  const { code, stdout, stderr } = await command(['apply', '-f', 'wrong.yaml']);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  const lines = stderr.trim().split('\n');
  expect(lines.map((line) => line.split(': ').slice(0, 2).join(' '))).toEqual([
    'wrong.yaml:3:5 throttles[0].maxConcurrentTasks',
    'wrong.yaml:4:5 throttles[0].maxTokens',
    'wrong.yaml:7:5 agents[0].dispatch',
    'wrong.yaml:12:5 agents[1].paused',
    'wrong.yaml:14:5 agents[2]',
    'wrong.yaml:19:5 agents[3].leaseSeconds',
    'wrong.yaml:22:5 agents[4].queue',
    'wrong.yaml:28:9 jobs[0].steps[0].when',
    'wrong.yaml:33:5 routes[0].config',
    'wrong.yaml:36:5 routes[0].labels',
    'wrong.yaml:37:1 agent',
    'runplane apply 11 problems, so nothing was changed.',
  ]);
  expect(lines[8]).toContain('config.n.$eval is no json-e template: a value is expected at its end');
  expect(await plane.rows(`select name from runplane.throttles where name = 't'`)).toEqual([]);
});

test.each([
  ['text that is no YAML', 'a: [', /^1:5: .*\n/],
  ['the same key twice', 'jobs: []\njobs: []\n', /^2:1: Map keys must be unique\n/],
  ['two documents', 'jobs: []\n---\njobs: []\n', /^2:1: .*documents/],
  ['a tag of programs', 'jobs: !!js/function x\n', /^1:7: /],
  [
    'a bomb of aliases',
    `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefgh'
      .split('')
      .map((key, i) => `${key}: &${key} [${Array(9).fill(`*${'abcdefg'[i]}`).join(',')}]`)
      .join('\n')}\n`,
    /alias/i,
  ],
  [
    'nothing',
    '# later\n',
    /The manifest is empty; it needs one of throttles, pools, queues, agents, jobs, routes\./,
  ],
  ['a list', '- name: a\n', /The manifest must be an object/],
  ['no list', 'jobs: { name: a }\n', /^1:1: jobs must be a list\.\n/],
])('%s is refused in words', (_, text, message) => {
  const { entries, faults } = readManifest(text);
  expect(entries).toEqual([]);
  expect(faults.map((fault) => `${fault.line}:${fault.column}: ${fault.message}\n`).join('')).toMatch(
    message,
  );
});

test('a file that there is not, and a call without one, are told', async () => {
  expect(await command(['apply', '-f', 'none.yaml'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('The manifest cannot be read: ENOENT'),
  });
  expect(await command(['apply'])).toMatchObject({ code: 2, stderr: expect.stringContaining('-f FILE') });
  expect(
    await runCommand(['export'], { env: { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' } }),
  ).toMatchObject({ code: 1, stderr: expect.stringContaining('DATABASE_UNREACHABLE') });
});

test('servers that run hear of it when it changed something, and only then', async () => {
  const quiet = await createTestDatabase();
  const listener = new pg.Client({ connectionString: quiet.url });
  await listener.connect();
  let heard = 0;
  listener.on('notification', () => heard++);
  await listener.query('listen runplane_changed');
  const env = { DATABASE_URL: quiet.url };
  const input = 'agents: [{ name: held, dispatch: { pull: {} }, maxConcurrentTasks: 1 }]';
  for (const [options, told] of [
    [['--dry-run'], 0],
    [[], 1],
    [[], 1],
  ] as const) {
    expect(await runCommand(['apply', '-f', '-', ...options], { env, input })).toMatchObject({ code: 0 });
    // What was sent before the command ended is delivered with the next answer.
    await listener.query('select');
    expect(heard).toBe(told);
  }
  await listener.end();
  await quiet.drop();
});

test('what was applied is told as such, also when servers cannot be told', async () => {
  const own = new URL(plane.database.url);
  const proxy = await startTcpProxy(`http://${own.host}`, { cutsAt: 'notify runplane_changed' });
  own.host = new URL(proxy.url).host;
  const applied = await runCommand(['apply', '-f', '-'], {
    env: { DATABASE_URL: own.href },
    input: 'agents: [{ name: untold, dispatch: { pull: {} } }]',
  });
  await proxy.stop();
  expect(applied).toMatchObject({ code: 0, stdout: expect.stringContaining('1 created, by ') });
  expect(applied.stderr).toMatch(
    /servers could not be told \(.+\); they take the changes over within 10 seconds/,
  );
  expect(await plane.rows(`select name from runplane.agents where name = 'untold'`)).toHaveLength(1);
});

test('a user without a name is told by its number', () => {
  const nameless = (): string => {
    throw new Error('uv_os_get_passwd returned ENOENT (no such file or directory)');
  };
  expect(systemUser(nameless)).toBe(`uid-${process.getuid?.()}@${hostname()}`);
  expect(systemUser()).toBe(`${userInfo().username}@${hostname()}`);
});

test('a worker that waits is given what a manifest makes possible', async () => {
  await plane.agent('held', { maxConcurrentTasks: 0 });
  await plane.job('one', ['held']);
  await plane.launch('one');
  const waiting = plane.claim(['held'], 1, { waitSeconds: 25 });
  expect(
    await command(
      ['apply', '-f', '-'],
      'agents: [{ name: held, dispatch: { pull: {} }, maxConcurrentTasks: 1 }]',
    ),
  ).toMatchObject({ code: 0 });
  const [task] = await waiting;
  if (!task) throw new Error('The worker waited in vain.');
  await plane.report(task, { status: 'COMPLETED' });
});

test('without DATABASE_URL it works on the embedded Postgres: alone on a new one, and beside a server that runs', async () => {
  const env = { RUNPLANE_DATA_DIR: join(directory, 'data'), DATABASE_URL: '' };
  const manifest = 'agents: [{ name: greeter, dispatch: { pull: {} } }]';
  const dry = await runCommand(['apply', '-f', '-', '--dry-run'], { env, input: manifest });
  expect(dry).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('has not the tables of this version'),
  });
  expect(await runCommand(['apply', '-f', '-'], { env, input: manifest })).toMatchObject({ code: 0 });
  const server = await startProcess('bin/runplane.js', ['start'], /runplane ready on http:\S+/, {
    ...env,
    RUNPLANE_PORT: '0',
  });
  const paused = manifest.replace('} }]', '}, paused: true }]');
  expect(await runCommand(['apply', '-f', '-'], { env, input: paused })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('~ update    agent    greeter'),
  });
  const [, url = ''] = /ready on (http:\S+)/.exec(server.output()) ?? [];
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      query: '{ agent(name: "greeter") { paused version } }',
    }),
  });
  expect(await response.json()).toEqual({ data: { agent: { paused: true, version: 2 } } });
  expect(await server.end('SIGTERM')).toBe(0);
}, 90_000);
