import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CommandOutcome, runCommand } from '../support/command.ts';
import { freePort } from '../support/free-port.ts';
import { type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';
import { type Mood, startMoodyProxy } from '../support/moody-proxy.ts';

const program = fileURLToPath(new URL('../../bin/runplane.js', import.meta.url));
let directory: string;
let server: GuardedServer;
let token: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'runplane-publish-'));
  server = await startGuardedServer();
  ({ secret: token } = await server.token({ scopes: ['PUBLISH'] }));
  await server.plane.agent('a');
  await server.plane.job('strict', ['a'], {
    type: 'object',
    required: ['n'],
    properties: { n: { type: 'integer' } },
  });
  const route = { name: 'strictly', topic: 'strict.>', job: 'strict' };
  await server.plane.services.configuration.saveRoute(route, { name: 'test', requestId: null });
});
afterAll(async () => {
  await server.stop();
  await rm(directory, { recursive: true, force: true });
});

const env = (url = server.url) => ({ RUNPLANE_URL: url, RUNPLANE_TOKEN: token });
const publish = (args: string[], input = '', url = server.url): Promise<CommandOutcome> =>
  runCommand(['publish', ...args], { env: env(url), input, cwd: directory });
const write = (name: string, content: string | Buffer): Promise<void> =>
  writeFile(join(directory, name), content);
const payloads = async (topic: string): Promise<unknown[]> =>
  (
    await server.plane.rows<{ payload: unknown }>(
      'select payload from runplane.events where topic = $1 order by id',
      [topic],
    )
  ).map(({ payload }) => payload);
const count = async (topic: string): Promise<number> =>
  (
    await server.plane.rows<{ n: number }>(
      'select count(*)::int as n from runplane.events where topic = $1',
      [topic],
    )
  )[0]?.n ?? 0;
const lines = (n: number, of: (i: number) => unknown): string =>
  Array.from({ length: n }, (_, i) => `${JSON.stringify(of(i))}\n`).join('');

test('lines of files, entries of a list, a single value and standard input become events, in order', async () => {
  await write('a.jsonl', '\ufeff{"n":1}\r\n\n  {"n": 2}  \n{"n":2}\n"text"');
  await write('b.json', '[\n  {"n":[1,{"x":"],\\"["}]}, 1.50,\n  "é" ]\n');
  await write('c.json', '{\n  "whole": [1, 2]\n}\n');
  const first = await publish(['mixed', 'a.jsonl', 'b.json', 'c.json', '-'], '{"last":true}\n');
  expect(first).toEqual({
    code: 0,
    stdout: '9 events on mixed: 9 published, 0 known already; 0 runs launched; 0 lines with problems\n',
    stderr: '',
  });
  const expected = [
    { n: 1 },
    { n: 2 },
    { n: 2 },
    'text',
    { n: [1, { x: '],"[' }] },
    1.5,
    'é',
    { whole: [1, 2] },
    { last: true },
  ];
  expect(await payloads('mixed')).toEqual(expected);

  const again = await publish(['mixed', './a.jsonl', 'b.json', 'c.json', '-'], '{"last":true}\n');
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('0 published, 9 known already') });
  await write('a.jsonl', '{"n":1}\n\n{"n": 2}\n{"n":2}\n"text"\n{"n":3}\n');
  expect(await publish(['mixed', 'a.jsonl'])).toMatchObject({
    stdout: expect.stringContaining('1 published, 4 known already'),
  });
  expect(await publish(['mixed', 'a.jsonl', '--batch', 'again'])).toMatchObject({
    stdout: expect.stringContaining('5 published, 0 known already'),
  });
  expect(await count('mixed')).toBe(15);
});

test('equal entries of a list on one line are events of their own', async () => {
  await write('equal.json', '[1,1,1]');
  for (const [published, known] of [
    [3, 0],
    [0, 3],
  ])
    expect(await publish(['equal', 'equal.json'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${published} published, ${known} known already`),
    });
});

test("the payload's own key counts, wherever it stands, and another payload under it is a conflict", async () => {
  await write(
    'keys.jsonl',
    '{"idempotency_key":"k","n":1}\n{"n":1}\n{"idempotency_key":"k","n":1}\n{"idempotency_key":"k","n":2}\n',
  );
  const { code, stdout, stderr } = await publish(['keyed', 'keys.jsonl']);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(/^keys\.jsonl:4: IdempotencyConflict: .*\n$/),
  });
  expect(stdout).toContain('2 published, 1 known already');
  expect(await count('keyed')).toBe(2);
});

test('what cannot be published is told by its line, and the rest is', async () => {
  await write(
    'wrong.jsonl',
    Buffer.concat([
      Buffer.from('{"n":1}\n{"n":\nnull\n'),
      Buffer.from([0x22, 0xff, 0x22, 0x0a]),
      Buffer.from(`{"n":4,"x":"${'x'.repeat(1_100_000)}"}\n`),
      Buffer.from(
        '{"n":12345678901234567890}\n{"n":1e400}\n{"n":"no"}\n{"correlation_id":7}\n{"__proto__":1}\n{"n":2}\n',
      ),
    ]),
  );
  const { code, stdout, stderr } = await publish(['strict.a', 'wrong.jsonl']);
  expect(code).toBe(1);
  expect(stdout).toBe(
    '3 events on strict.a: 3 published, 0 known already; 2 runs launched; 9 lines with problems\n',
  );
  expect(
    stderr
      .trim()
      .split('\n')
      .map((line) => line.slice(0, 60)),
  ).toEqual([
    expect.stringContaining('wrong.jsonl:2: is no JSON: '),
    'wrong.jsonl:3: is null, which is no payload.',
    'wrong.jsonl:4: is not UTF-8.',
    expect.stringMatching(/^wrong\.jsonl:5: is longer than \d+ bytes/),
    expect.stringContaining('wrong.jsonl:6: InvalidInput: '),
    expect.stringContaining('wrong.jsonl:7: InvalidInput: '),
    expect.stringContaining('wrong.jsonl:8: stored, but route strictly did not launch'),
    expect.stringContaining('wrong.jsonl:9: InvalidInput: '),
    expect.stringContaining('wrong.jsonl:10: InvalidInput: '),
  ]);
  expect(await payloads('strict.a')).toEqual([{ n: 1 }, { n: 'no' }, { n: 2 }]);

  await write('wrong.json', `[1,{bad},,\n"${'x'.repeat(1_100_000)}", 2`);
  const list = await publish(['list', 'wrong.json']);
  expect(list).toMatchObject({ code: 1, stdout: expect.stringContaining('1 published') });
  expect(list.stderr.trim().split('\n')).toEqual([
    expect.stringMatching(/^wrong\.json:1: is no JSON: /),
    'wrong.json:1: is missing before a comma.',
    expect.stringMatching(/^wrong\.json:2: is longer than \d+ bytes/),
    'wrong.json:2: The list has no end.',
  ]);
});

test('killed in the middle and run again, it publishes what is missing and nothing twice', async () => {
  const total = 12_000;
  // Half of the lines are equal to another one.
  await write(
    'many.jsonl',
    lines(total, (i) => ({ n: i >> 1, filler: 'x'.repeat(200) })),
  );
  const child = spawn(process.execPath, [program, 'publish', 'many', 'many.jsonl'], {
    cwd: directory,
    env: { ...process.env, ...env() },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  await expect.poll(() => count('many'), { interval: 10, timeout: 30_000 }).toBeGreaterThan(1000);
  child.kill('SIGKILL');
  expect(await ended).toEqual([null, 'SIGKILL']);
  const before = await count('many');
  expect(before).toBeLessThan(total);

  const { code, stdout } = await publish(['many', 'many.jsonl']);
  expect(code).toBe(0);
  const [, published, known] = /(\d+) published, (\d+) known already/.exec(stdout) ?? [];
  expect(Number(published) + Number(known)).toBe(total);
  expect(Number(published)).toBeGreaterThan(0);
  expect(Number(known)).toBeGreaterThanOrEqual(before);
  expect(await count('many')).toBe(total);
  const [{ different } = { different: 0 }] = await server.plane.rows<{ different: number }>(
    `select count(distinct payload->'n')::int as different from runplane.events where topic = 'many'`,
  );
  expect(different).toBe(total / 2);
}, 120_000);

test('answers that are lost, refused for a while or not the server’s are asked for again, and everything is stored once', async () => {
  const moods: Mood[] = [
    'reset',
    { status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad gateway</h1>' },
    { status: 429, headers: { 'retry-after': '0.2' }, body: '{}' },
    'lost',
    'unavailable',
    {
      status: 200,
      body: '{"data":{"publishEvents":null},"errors":[{"message":"Too busy.","extensions":{"code":"UNAVAILABLE"}}]}',
    },
  ];
  const proxy = await startMoodyProxy(server.url, moods);
  const { code, stdout, stderr } = await publish(
    ['moody', '-'],
    lines(10, (n) => ({ n })),
    proxy.url,
  );
  expect(code).toBe(0);
  // All were stored by the request whose answer was lost.
  expect(stdout).toContain('10 events on moody: 0 published, 10 known already');
  expect(await payloads('moody')).toEqual(Array.from({ length: 10 }, (_, n) => ({ n })));
  expect(stderr.match(/Trying again in \d+\.\d s\.\n/g)).toHaveLength(moods.length);
  expect(stderr).toContain('The database went away.');
  expect(proxy.requests()).toBe(moods.length + 1);
  await proxy.stop();
}, 60_000);

test('a server that comes up later is waited for, and one that does not is given up', async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const late = await runCommand(['publish', 'never', '-', '--url', url, '--retry-for', '1'], {
    env: env(),
    input: '1\n',
  });
  expect(late).toMatchObject({ code: 1, stdout: expect.stringContaining('0 published') });
  expect(late.stderr).toContain('Nothing could be published for 1 s: No answer from');
  expect(late.stderr).toContain('ECONNREFUSED');
});

test('a token that may not publish, or is none, is told at once', async () => {
  const { secret } = await server.token({ scopes: ['READ'] });
  const reader = await runCommand(['publish', 'denied', '-'], {
    env: { ...env(), RUNPLANE_TOKEN: secret },
    input: '1\n',
  });
  expect(reader).toMatchObject({ code: 1, stderr: expect.stringContaining('-:1: Forbidden: ') });
  const nobody = await runCommand(['publish', 'denied', '-'], {
    env: { ...env(), RUNPLANE_TOKEN: 'nothing' },
    input: '1\n',
  });
  expect(nobody).toMatchObject({ code: 1, stderr: expect.stringContaining('RUNPLANE_TOKEN has to be') });
  expect(nobody.stderr).not.toContain('Trying again');
  expect(nobody.stderr).not.toContain('nothing');
  expect(await count('denied')).toBe(0);
});

test('what comes in slowly is published while it comes', async () => {
  const child = spawn(process.execPath, [program, 'publish', 'slow', '-'], {
    env: { ...process.env, ...env() },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.write('{"n":1}\n{"n":2}\n{"n"');
  await expect.poll(() => count('slow'), { timeout: 20_000 }).toBe(2);
  child.stdin.end(':3}\n');
  expect(await once(child, 'exit')).toEqual([0, null]);
  expect(await count('slow')).toBe(3);
});

test.each(['jsonl', 'json'])(
  'a %s file that is larger than the memory it may take is read all the same',
  async (format) => {
    const file = join(directory, `huge.${format}`);
    await write(`huge.${format}`, format === 'json' ? '[1, "' : '1\n');
    // Half a GiB of NUL, which take no place on the disk.
    await truncate(file, 512 * 1024 * 1024);
    const tell = `process.on('exit', () => console.error(process.resourceUsage().maxRSS + ' KiB'))`;
    const { code, stdout, stderr } = await runCommand(['publish', `huge.${format}`, file], {
      env: { ...env(), NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(tell)}` },
    });
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining('1 published') });
    expect(Number(/(\d+) KiB/.exec(stderr)?.[1])).toBeLessThan(256 * 1024);
  },
  60_000,
);

test('on a terminal it draws a bar, erases it at the end, and keeps what it tells', async () => {
  await write('bar.jsonl', `${lines(3000, (n) => ({ n }))}oops\n${lines(3000, (n) => ({ n }))}`);
  const child = spawn(
    'script',
    ['-qefc', `${process.execPath} ${program} publish bar bar.jsonl`, '/dev/null'],
    {
      cwd: directory,
      env: { ...process.env, ...env(), TERM: 'xterm' },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  let screen = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (screen += text));
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(screen).toMatch(/\[#+-+\] [1-9]\d? %, [1-5]\d{3} events, \d+ a second/);
  // What stays on the screen when every line that was erased is gone.
  const shown = screen.replace(/[^\n]*\r\u001b\[K/g, '');
  expect(shown.split(/\r?\n/).filter((line) => line !== '')).toEqual([
    expect.stringMatching(/^bar\.jsonl:3001: is no JSON: /),
    '6000 events on bar: 6000 published, 0 known already; 0 runs launched; 1 lines with problems',
  ]);
}, 60_000);

test.each([
  ['no file', ['topic']],
  ['a topic with a wildcard', ['a.*', '-']],
  ['a file twice', ['a', 'x', 'x']],
  ['no URL', ['a', '-', '--url', 'localhost']],
  ['a format that there is not', ['a', '-', '--format', 'csv']],
])('%s is a wrong call', async (_, args) => {
  expect(await publish(args)).toMatchObject({ code: 2, stdout: '' });
});

test('a file that there is not is told before anything is published', async () => {
  await write('there.jsonl', '1\n');
  expect(await publish(['partly', 'there.jsonl', 'absent.jsonl'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('absent.jsonl cannot be read: ENOENT'),
  });
  expect(await count('partly')).toBe(0);
});
