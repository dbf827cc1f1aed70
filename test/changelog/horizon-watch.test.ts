import pg from 'pg';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { decodeCursor } from '../../src/changelog/cursor.ts';
import { readBlocker } from '../../src/changelog/horizon-blocker.sql.ts';
import { followHorizon } from '../../src/changelog/horizon-watch.ts';
import { Database } from '../../src/db/pool.ts';
import { connectionTo } from '../support/connection.ts';
import { openEventStream } from '../support/event-stream.ts';
import { bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';

describe('a horizon stands still', () => {
  test('from when others were ahead of it, until it moves on', () => {
    const first = followHorizon(null, '10:12:10', 100);
    expect(first).toEqual({ horizon: 10n, since: 100 });
    expect(followHorizon(first, '10:90:10,11', 5_000)).toBe(first);
    expect(followHorizon(first, '11:90:11', 6_000)).toEqual({ horizon: 11n, since: 6_000 });
  });

  test('and not while nothing else happens, however long its transaction is open', () => {
    expect(followHorizon({ horizon: 10n, since: 1 }, '12:12:', 100_000)).toBeNull();
    expect(followHorizon(null, '10:10:', 100_000)).toBeNull();
  });
});

/** A transaction that has written, in the database of the cluster that no test uses. */
class OpenTransaction {
  static readonly applicationName = 'forgotten-migration';
  readonly #client = new pg.Client({
    connectionString: inject('postgresUrl'),
    application_name: OpenTransaction.applicationName,
  });
  pid = 0;
  xid = 0n;

  async begin(): Promise<void> {
    await this.#client.connect();
    await this.#client.query('begin');
    const { rows } = await this.#client.query<{ pid: number; xid: string }>(
      'select pg_backend_pid() as pid, pg_current_xact_id()::text as xid',
    );
    this.pid = rows[0]?.pid ?? 0;
    this.xid = BigInt(rows[0]?.xid ?? 0);
  }

  async end(): Promise<void> {
    await this.#client.end();
  }
}

let server: GuardedServer | null = null;
let open: OpenTransaction | null = null;
afterEach(async () => {
  await open?.end();
  open = null;
  await server?.stop();
  server = null;
});

test('a transaction left open in another database is named, while streams go on and their cursors wait', async () => {
  const warnings: { blocker?: { pid: number } }[] = [];
  const notices: string[] = [];
  const { plane, ...http } = (server = await startGuardedServer(
    {},
    {
      notices: {
        warn: (fields) => warnings.push(fields),
        info: (_, message) => notices.push(message),
      },
    },
  ));
  await plane.agent('a');
  await plane.job('one', ['a']);
  const { secret } = await http.token({ scopes: ['READ'] });
  const health = async (headers = {}) =>
    (await (await fetch(`${http.http.url}/healthz`, { headers })).json()) as {
      status: string;
      horizonStall: { seconds: number; blocker?: { pid: number } } | null;
    };
  open = new OpenTransaction();
  await open.begin();
  const { pid, xid } = open;
  await plane.launch('one');

  const stalled = async () => (await health(bearer(secret))).horizonStall?.blocker?.pid;
  await expect.poll(stalled, { timeout: 25_000, interval: 200 }).toBe(pid);
  expect(await health(bearer(secret))).toMatchObject({
    status: 'ok',
    horizonStall: {
      blocker: {
        kind: 'SESSION',
        pid,
        database: new URL(inject('postgresUrl')).pathname.slice(1),
        user: expect.any(String),
        applicationName: OpenTransaction.applicationName,
        state: 'idle in transaction',
        openSince: expect.any(String),
      },
    },
  });
  // Who has no credential learns that there is one, and nothing of it.
  for (const headers of [{}, bearer('guessed')])
    expect((await health(headers)).horizonStall).toEqual({ seconds: expect.any(Number) });
  expect((await fetch(`${http.http.url}/readyz`)).status).toBe(200);

  const stream = await openEventStream(
    http.url,
    'subscription { runStatusChanged { cursor changes { toStatus } } }',
    bearer(secret),
  );
  const epoch = plane.database.installation.epoch;
  await stream.next();
  for (let round = 0; round < 3; round++) {
    await plane.launch('one');
    const message = await stream.next();
    expect(message?.data).toContain('QUEUED');
    expect(decodeCursor(epoch, message?.id ?? '')?.xid).toBeLessThanOrEqual(xid);
  }
  stream.leave();

  await open.end();
  open = null;
  await expect.poll(stalled, { timeout: 25_000, interval: 200 }).not.toBe(pid);
  expect(warnings.filter(({ blocker }) => blocker?.pid === pid)).toHaveLength(1);
  expect(notices).toContain('the horizon of the change log moves on again');
}, 90_000);

test('a user of the database who may see little is told whose transaction it is all the same', async () => {
  server = await startGuardedServer();
  const { plane } = server;
  const role = `limited_${Math.random().toString(36).slice(2)}`;
  const url = new URL(plane.database.url);
  await plane.rows(`create role ${role} login password 'limited'`);
  url.username = role;
  url.password = 'limited';
  // Not through a pooler, which has a user of its own.
  const limited = new Database({
    ...connectionTo(url.toString(), null),
    applicationName: 'runplane-test',
    onError: () => {},
  });
  open = new OpenTransaction();
  await open.begin();
  try {
    expect(await readBlocker(limited, open.xid)).toMatchObject({
      pid: open.pid,
      applicationName: OpenTransaction.applicationName,
      state: null,
      openSince: null,
    });
    expect(await readBlocker(limited, open.xid + 1_000_000n)).toBeNull();
  } finally {
    await limited.close();
    await plane.rows(`drop role ${role}`);
  }
});
