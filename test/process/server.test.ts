import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { joinEmbeddedPostgres } from '../../src/db/embedded-postgres.ts';
import { type Process, startProcess } from '../support/processes.ts';

let directory: string;
let started: Process[] = [];
beforeEach(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'runplane-process-')), 'data');
});
afterEach(async () => {
  // The last one that ends in good order stops Postgres.
  for (const server of started) await server.end('SIGTERM');
  started = [];
  await rm(join(directory, '..'), { recursive: true, force: true });
});

const ready = /runplane ready on (http:\S+)/;

async function start(env: Record<string, string> = {}): Promise<{ server: Process; url: string }> {
  const server = await startProcess('src/main.ts', [], ready, {
    RUNPLANE_DATA_DIR: directory,
    RUNPLANE_PORT: '0',
    LOG_LEVEL: 'warn',
    ...env,
  });
  started.push(server);
  return { server, url: ready.exec(server.output())?.[1] ?? '' };
}

async function gql<Data>(url: string, query: string): Promise<Data> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return ((await response.json()) as { data: Data }).data;
}

/** Whether the Postgres of the directory still takes connections. */
async function isPostgresUp(): Promise<boolean> {
  const port = Number(await readFile(join(directory, 'port'), 'utf8'));
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

test('a server starts on an empty directory, tells its settings, stops in good order and starts again on the same data', async () => {
  const first = await start();
  expect(first.server.output()).toContain('authentication is off');
  expect(first.server.output()).toContain('core 8');
  expect((await fetch(`${first.url}/readyz`)).status).toBe(200);
  const { publishEvent } = await gql<{ publishEvent: { eventId: string } }>(
    first.url,
    'mutation { publishEvent(input: { topic: "a.b", payload: {} }) { ... on PublishEventSuccess { eventId } } }',
  );
  expect(await first.server.end('SIGTERM')).toBe(0);
  expect(first.server.output()).toContain('stopped');
  const second = await start();
  expect(await gql(second.url, `{ event(id: "${publishEvent.eventId}") { topic } }`)).toEqual({
    event: { topic: 'a.b' },
  });
});

test('two servers share a directory; Postgres outlives the first and a killed one, and goes with the last', async () => {
  const [a, b] = await Promise.all([start(), start()]);
  const { publishEvent } = await gql<{ publishEvent: { eventId: string } }>(
    a.url,
    'mutation { publishEvent(input: { topic: "a.b", payload: {} }) { ... on PublishEventSuccess { eventId } } }',
  );
  await a.server.end('SIGTERM');
  expect(await gql(b.url, `{ event(id: "${publishEvent.eventId}") { topic } }`)).toEqual({
    event: { topic: 'a.b' },
  });
  await b.server.end('SIGKILL');
  const c = await start();
  expect(await gql(c.url, `{ event(id: "${publishEvent.eventId}") { topic } }`)).toEqual({
    event: { topic: 'a.b' },
  });
  expect(await isPostgresUp()).toBe(true);
  expect(await c.server.end('SIGINT')).toBe(0);
  expect(await isPostgresUp()).toBe(false);
});

test('lease tokens follow the secret key, a cancel its grace time, and housekeeping its switch', async () => {
  const settings = {
    RUNPLANE_SECRET_KEY: 'k'.repeat(32),
    RUNPLANE_CANCEL_GRACE_SECONDS: '600',
    RUNPLANE_HOUSEKEEPING: 'off',
  };
  const [a, b, stranger] = [
    await start(settings),
    await start(settings),
    await start({ ...settings, RUNPLANE_SECRET_KEY: 'x'.repeat(32) }),
  ];
  const { claimTasks } = await gql<{
    claimTasks: { assignments: { attemptId: string; leaseToken: string; taskId: string }[] };
  }>(
    a.url,
    `mutation { saveAgent(input: { name: "a", dispatch: { pull: {} } }) { __typename }
       saveJob(input: { name: "one", steps: [{ name: "a", agent: "a" }] }) { __typename }
       launchRun(input: { job: "one" }) { __typename }
       claimTasks(input: { workerId: "w", agents: ["a"], limit: 1 }) { ... on ClaimTasksSuccess { assignments { attemptId leaseToken taskId } } } }`,
  );
  const [task] = claimTasks.assignments;
  if (!task) throw new Error('nothing was claimed');
  const lease = `attemptId: "${task.attemptId}", leaseToken: "${task.leaseToken}"`;
  const beat = async ({ url }: { url: string }) => {
    const mutation = `mutation { extendLeases(leases: [{ ${lease} }]) { state cancelDeadline } }`;
    return (await gql<{ extendLeases: { state: string; cancelDeadline: string }[] }>(url, mutation))
      .extendLeases[0];
  };
  const report = async ({ url }: { url: string }) => {
    const mutation = `mutation { reportResult(input: { ${lease}, status: COMPLETED }) { __typename } }`;
    return (await gql<{ reportResult: object }>(url, mutation)).reportResult;
  };
  expect(await beat(b)).toMatchObject({ state: 'HELD' });
  expect(await beat(stranger)).toMatchObject({ state: 'STALE' });
  expect(await report(stranger)).toEqual({ __typename: 'LeaseTokenInvalid' });

  const { cancelTask } = await gql<{ cancelTask: { task: { cancelRequestedAt: string } } }>(
    b.url,
    `mutation { cancelTask(taskId: "${task.taskId}") { ... on TaskActionSuccess { task { cancelRequestedAt } } } }`,
  );
  const asked = await beat(a);
  expect(asked?.state).toBe('CANCEL_REQUESTED');
  const grace = Date.parse(asked?.cancelDeadline ?? '') - Date.parse(cancelTask.task.cancelRequestedAt);
  expect(Math.round(grace / 60_000)).toBe(10);
  expect(await report(b)).toEqual({ __typename: 'ReportResultSuccess' });

  const postgres = await joinEmbeddedPostgres({ dataDir: directory });
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  const duties = async () => (await client.query('select name from runplane.duties order by name')).rows;
  expect(await duties()).toEqual([]);
  await start({ ...settings, RUNPLANE_HOUSEKEEPING: 'on' });
  await expect.poll(duties, { timeout: 20_000 }).not.toEqual([]);
  await client.end();
  await postgres.leave();
});

test('a port in use and wrong settings are told in sentences, all at once', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as AddressInfo;
  await expect(start({ RUNPLANE_PORT: String(port) })).rejects.toThrow(`Port ${port} is in use.`);
  await expect(
    start({ RUNPLANE_HOST: '0.0.0.0', RUNPLANE_PORT: 'many', RUNPLANE_PROT: '1' }),
  ).rejects.toThrow(/RUNPLANE_PROT[\s\S]*RUNPLANE_PORT|RUNPLANE_PORT[\s\S]*RUNPLANE_PROT/);
  other.close();
  await expect(start({ RUNPLANE_TRUSTED_DOCUMENTS: 'package.json' })).rejects.toThrow(
    'RUNPLANE_TRUSTED_DOCUMENTS cannot be used: name is not the SHA-256 of its document.',
  );
});

test('a server that others can reach starts only when it asks for tokens; the admin token makes the first, which outlives it', async () => {
  const host = { RUNPLANE_HOST: '0.0.0.0' };
  await expect(start(host)).rejects.toThrow(
    'Set RUNPLANE_AUTH to token and RUNPLANE_ADMIN_TOKEN to a secret',
  );
  const ask = async (url: string, query: string, token: string) => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ query }),
    });
    return {
      status: response.status,
      body: (await response.json()) as { data: { createApiToken: { secret: string } } },
    };
  };
  const adminToken = 'the-token-of-the-administrator';
  const first = await start({ ...host, RUNPLANE_AUTH: 'token', RUNPLANE_ADMIN_TOKEN: adminToken });
  expect(first.server.output()).toContain('authentication: token, admin token set');
  const { body } = await ask(
    first.url,
    'mutation { createApiToken(input: { name: "first", scopes: [READ] }) { ... on CreateApiTokenSuccess { secret } } }',
    adminToken,
  );
  const { secret } = body.data.createApiToken;
  expect(await first.server.end('SIGTERM')).toBe(0);
  for (const hidden of [adminToken, secret]) expect(first.server.output()).not.toContain(hidden);

  const second = await start({ ...host, RUNPLANE_AUTH: 'token' });
  expect((await ask(second.url, '{ viewer { name } }', secret)).body.data).toEqual({
    viewer: { name: 'first' },
  });
  expect((await ask(second.url, '{ viewer { name } }', adminToken)).status).toBe(401);
});

test('of the list of trusted documents that a command prints, all are executed, and nothing else', async () => {
  const file = 'schema/operations/demo.graphql';
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--import',
    'tsx',
    'src/cli/hash-documents.ts',
    file,
  ]);
  const list = join(directory, '..', 'documents.json');
  await writeFile(list, stdout);
  const { url } = await start({ RUNPLANE_TRUSTED_DOCUMENTS: list });
  const post = (body: object) =>
    fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const whole = await post({ query: await readFile(file, 'utf8'), operationName: 'DemoStart' });
  expect(await whole.json()).toEqual({ data: { changeLogCursor: expect.any(String) } });
  const [documentId] = Object.entries(JSON.parse(stdout) as Record<string, string>).find(
    ([, document]) =>
      document.startsWith('query DemoStart {\n  changeLogCursor\n}') && !document.includes('mutation'),
  ) as [string, string];
  expect((await post({ documentId })).status).toBe(200);
  expect((await post({ query: '{ viewer { name } }' })).status).toBe(403);
});

test('a ctrl-C while it starts leaves nothing behind, and one fault of the database is told in a sentence', async () => {
  const starting = await startProcess('src/main.ts', [], /applying migrations/, {
    RUNPLANE_DATA_DIR: directory,
    RUNPLANE_PORT: '0',
  });
  started.push(starting);
  expect(await starting.end('SIGINT')).toBe(0);
  expect(await isPostgresUp()).toBe(false);
  await expect(start({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' })).rejects.toThrow(
    'DATABASE_UNREACHABLE: no connection to DATABASE_URL',
  );
});

test('a server whose database is gone stops all the same', async () => {
  const postgres = await joinEmbeddedPostgres({ dataDir: directory });
  const { server } = await start({ DATABASE_URL: postgres.url });
  await postgres.leave();
  await server.end('SIGTERM');
  expect(server.child.signalCode).toBeNull();
});
