import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';

/** Debian's own Postgres: the oldest version that is supported. */
const bin = '/usr/lib/postgresql/15/bin';

/** Postgres and its pooler refuse root: as root they run as the user that Debian made for them. */
const as = (command: string, args: string[]): [string, string[]] =>
  process.getuid?.() === 0
    ? ['setpriv', ['--reuid=postgres', '--regid=postgres', '--clear-groups', command, ...args]]
    : [command, args];
const run = (command: string, args: string[]): void => {
  execFileSync(...as(command, args), { stdio: 'ignore', cwd: '/' });
};

function ownDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'runplane-debian-'));
  if (process.getuid?.() === 0) execFileSync('chown', ['postgres', directory]);
  chmodSync(directory, 0o700);
  return directory;
}

export interface Postgres {
  url: string;
  port: number;
  start(): void;
  /** `immediate` is what a power cut leaves: no checkpoint, no goodbye to the clients. */
  stop(mode: 'fast' | 'immediate'): void;
  remove(): void;
}

/** A cluster of its own on a free port, with the given settings. */
export async function startDebianPostgres(settings: Record<string, string> = {}): Promise<Postgres> {
  const directory = ownDirectory();
  const data = join(directory, 'data');
  const port = await freePort();
  run(join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust']);
  const options = Object.entries({
    listen_addresses: '127.0.0.1',
    unix_socket_directories: directory,
    ...settings,
  }).map(([name, value]) => `-c '${name}=${value}'`);
  const flags = `-p ${port} ${options.join(' ')}`;
  const start = (): void =>
    run(join(bin, 'pg_ctl'), ['-D', data, '-l', join(directory, 'log'), '-w', '-o', flags, 'start']);
  const stop = (mode: string): void => {
    spawnSync(...as(join(bin, 'pg_ctl'), ['-D', data, '-w', '-m', mode, 'stop']), { stdio: 'ignore' });
  };
  start();
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    start,
    stop,
    remove: () => {
      stop('fast');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export interface Pooler {
  /** The address of a database, behind the pooler. */
  url: string;
  stop(): Promise<void>;
}

/** pgbouncer in transaction mode before a server; it refuses startup parameters, as it does by default. */
export async function startPgbouncer(server: { port: number }): Promise<Pooler> {
  const directory = ownDirectory();
  const port = await freePort();
  const file = join(directory, 'pgbouncer.ini');
  writeFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${server.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
max_client_conn = 1000
`,
    { mode: 0o644 },
  );
  const process_ = spawn(...as('/usr/sbin/pgbouncer', [file]), { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(process_, 'exit');
  await new Promise<void>((resolve, reject) => {
    let output = '';
    process_.stderr?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes('process up')) resolve();
    });
    process_.once('exit', (code) => reject(new Error(`pgbouncer ended with ${code}: ${output}`)));
  });
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    stop: async () => {
      process_.kill('SIGTERM');
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
