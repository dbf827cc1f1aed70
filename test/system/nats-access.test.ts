import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstream } from '@nats-io/jetstream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { connectTo } from '../../src/ingest/connection.ts';
import { type Ingest, startIngest } from '../../src/ingest/ingest.ts';
import { setUpStreams } from '../../src/ingest/setup.ts';
import type { NatsConfig } from '../../src/nats-config.ts';
import { eventsOf } from '../support/broker.ts';
import { ControlPlane, quiet } from '../support/control-plane.ts';
import { type Certificates, makeCertificates, makeNkey, makeOperator } from '../support/nats-access.ts';
import { type NatsServer, startNatsServer } from '../support/nats-server.ts';

let plane: ControlPlane;
let directory: string;
let server: NatsServer | null;
let ingest: Ingest | null;
beforeEach(async () => {
  plane = await ControlPlane.start();
  directory = mkdtempSync(join(tmpdir(), 'runplane-access-'));
  server = null;
  ingest = null;
});
afterEach(async () => {
  await ingest?.stop();
  await server?.remove();
  await plane.stop();
  rmSync(directory, { recursive: true, force: true });
});

const soon = { timeout: 20_000 };

/** What a server has to be told, and what Runplane has to; and what it would be told in vain. */
interface Way {
  config: string;
  env: Record<string, string>;
  /** Default: the URL of the server. */
  url?: (port: number) => string;
  wrong: Record<string, string>;
}

const certificates = (): Certificates => makeCertificates(directory, 'right');
const tls = ({ ca, cert, key }: Certificates): string =>
  `tls { cert_file: "${cert}", key_file: "${key}", ca_file: "${ca}", verify: true }`;

const ways: Record<string, () => Way> = {
  'user and password': () => ({
    config: 'authorization { user: me, password: hunter2 }',
    env: { NATS_USER: 'me', NATS_PASSWORD: 'hunter2' },
    wrong: { NATS_USER: 'me', NATS_PASSWORD: 'hunter3' },
  }),
  'user and password in the URL': () => ({
    config: 'authorization { user: me, password: "hunter2:/@" }',
    env: {},
    url: (port) => `nats://me:hunter2%3A%2F%40@127.0.0.1:${port}`,
    wrong: { NATS_URL: 'nats://me:hunter3@127.0.0.1:PORT' },
  }),
  'a token': () => ({
    config: 'authorization { token: hunter2 }',
    env: { NATS_TOKEN: 'hunter2' },
    wrong: { NATS_TOKEN: 'hunter3' },
  }),
  'a token in the URL': () => ({
    config: 'authorization { token: hunter2 }',
    env: {},
    url: (port) => `nats://hunter2@127.0.0.1:${port}`,
    wrong: {},
  }),
  'an nkey': () => {
    const { seed, publicKey } = makeNkey();
    return {
      config: `authorization { users: [{ nkey: ${publicKey} }] }`,
      env: { NATS_NKEY: seed },
      wrong: { NATS_NKEY: makeNkey().seed },
    };
  },
  'a credentials file': () => {
    const { config, credentials } = makeOperator(directory);
    return {
      config,
      env: { NATS_CREDENTIALS: credentials },
      wrong: { NATS_CREDENTIALS: join(directory, 'not-there.creds') },
    };
  },
  'TLS with a certificate': () => {
    const right = certificates();
    const other = makeCertificates(directory, 'other');
    const env = { NATS_TLS_CERT: right.cert, NATS_TLS_KEY: right.key };
    return {
      config: tls(right),
      env: { ...env, NATS_TLS_CA: right.ca },
      url: (port) => `tls://localhost:${port}`,
      // The server is not who it says to be, for who trusts another authority.
      wrong: { ...env, NATS_URL: 'tls://localhost:PORT', NATS_TLS_CA: other.ca },
    };
  },
  'TLS where the server has none': () => ({
    config: '',
    env: {},
    wrong: { NATS_URL: 'tls://127.0.0.1:PORT' },
  }),
};

function configOf(env: Record<string, string>, url: string): NatsConfig {
  const { nats } = readConfig({ NATS_URL: url, NATS_ACK_WAIT_SECONDS: '2', ...env });
  if (!nats) throw new Error('There is no NATS_URL.');
  return nats;
}

test.each(Object.entries(ways))('by %s a stream is set up, and its messages come in', async (_, way) => {
  const { config, env, url, wrong } = way();
  server = await startNatsServer({ config });
  const { port } = server;
  const logged: string[] = [];
  const log = {
    ...quiet,
    warn: (fields: object, message: string) => logged.push(JSON.stringify(fields), message),
  };
  const { db, intake } = plane.services;

  const inVain = { ...wrong };
  if (inVain.NATS_URL) inVain.NATS_URL = inVain.NATS_URL.replace('PORT', String(port));
  const address = url?.(port) ?? `nats://127.0.0.1:${port}`;
  const refused = startIngest(configOf(inVain, `nats://127.0.0.1:${port}`), { db, intake, log });
  await expect.poll(() => logged.join(), soon).toContain('NATS cannot be reached');
  expect(refused.notReady()).toEqual(['nats: not connected, which is tried again; the log says why']);
  await refused.stop();
  for (const secret of ['hunter', ...Object.values(env).filter((value) => value.startsWith('SU'))])
    expect(logged.join()).not.toContain(secret);

  const right = configOf(env, address);
  ingest = startIngest(right, { db, intake, log: quiet });
  expect(await setUpStreams(right)).toMatchObject([{ stream: 'PIPELINE', created: true }]);
  const producer = await connectTo(right, 'producer');
  await jetstream(producer).publish('pipeline.x', '{"n":1}');
  await producer.close();
  await expect.poll(() => eventsOf(plane), soon).toMatchObject([{ payload: { n: 1 } }]);
  expect(ingest.notReady()).toEqual([]);
});

test("without a permission for the broker's advisories, what it gives up is found all the same", async () => {
  server = await startNatsServer({
    config: `authorization { users: [
      { user: all, password: x },
      { user: me, password: x, permissions: { publish: ["$JS.API.>", "$JS.ACK.>"], subscribe: ["_INBOX.>"] } }
    ] }`,
  });
  const all = configOf({ NATS_USER: 'all', NATS_PASSWORD: 'x' }, `nats://127.0.0.1:${server.port}`);
  await setUpStreams(all);
  const other = await connectTo(all, 'other');
  const js = jetstream(other);
  await js.publish('pipeline.x', '{"n":1}');
  const { db, intake } = plane.services;
  const warnings: string[] = [];
  const log = { ...quiet, warn: (_: object, message: string) => warnings.push(message) };
  const start = (): Ingest => startIngest({ ...all, user: 'me', maxDeliver: 2 }, { db, intake, log });
  ingest = start();
  await expect.poll(() => eventsOf(plane), soon).toHaveLength(1);
  expect(warnings).toContain('what the broker gives up is noticed late');
  await ingest.stop();

  // Another process takes it, each time, and vanishes.
  await js.publish('pipeline.x', '{"n":2}');
  const consumer = await js.consumers.get('PIPELINE', 'runplane');
  await consumer.next();
  await consumer.next({ expires: 5000 });
  ingest = start();
  await expect.poll(() => eventsOf(plane), soon).toHaveLength(2);
  await other.close();
});
