import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile, rename, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { clusterPathFor } from './cluster.ts';
import type { DataDirectory } from './data-directory.ts';
import { EmbeddedPostgresError, errorCode, unlessMissing } from './error.ts';
import { clusterSetting, findPostmaster } from './postmaster.ts';
import { postgresEnvironment, type RunUser, spawnIdentity } from './run-as.ts';

const maxLogBytes = 16 * 1024 * 1024;

/**
 * How a launch ended: the server is ready; it goes on starting although the
 * time is over; or it ended because something was in the way that may go away.
 */
export type LaunchOutcome = 'ready' | 'still starting' | 'port taken' | 'predecessor lingers';

/** Starts Postgres on the cluster, which must have no running server, and waits until it is ready. */
export async function launchPostmaster(
  directory: DataDirectory,
  options: {
    program: string;
    user: RunUser | undefined;
    settings: Readonly<Record<string, string>>;
    deadline: number;
  },
): Promise<LaunchOutcome> {
  const port = await choosePort(directory);
  const args = commandLineSettings(directory, {
    ...defaultSettings,
    port: String(port),
    ...options.settings,
  });
  const logStart = await rotateLog(directory.log);
  const log = await open(directory.log, 'a', 0o600);
  let child: ChildProcess;
  try {
    // A session of its own (detached), so that signals to the process group of
    // Runplane, such as those of ctrl-C, do not reach Postgres.
    child = spawn(options.program, ['-D', clusterPathFor(options.user, directory.cluster), ...args], {
      ...spawnIdentity(options.user),
      cwd: directory.cluster,
      env: postgresEnvironment(),
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    });
  } finally {
    await log.close();
  }
  child.unref();
  let spawnFailure: Error | undefined;
  child.on('error', (error) => {
    spawnFailure = error;
  });

  while (Date.now() < options.deadline) {
    if (spawnFailure !== undefined || child.exitCode !== null || child.signalCode !== null) {
      return judgeFailure(directory, spawnFailure?.message ?? (await readLogFrom(directory.log, logStart)));
    }
    const postmaster = await findPostmaster(directory);
    if (postmaster !== undefined && postmaster.pid === child.pid && postmaster.status === 'ready')
      return 'ready';
    await sleep(10);
  }
  return 'still starting';
}

const defaultSettings = {
  listen_addresses: '127.0.0.1',
  // Clients use TCP, and the path of a socket in a deep data directory would be too long.
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '256MB',
  max_wal_size: '2GB',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  log_destination: 'stderr',
  logging_collector: 'off',
  log_line_prefix: '%m [%p] ',
  // Statements and details of errors can contain secrets; who sent them gets them anyway.
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
} as const;

function commandLineSettings(directory: DataDirectory, settings: Readonly<Record<string, string>>): string[] {
  return Object.entries({ [clusterSetting]: directory.cluster, ...settings }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
}

/** The port of the last start if it is free, so that clients of a crashed server find the new one, else any. */
async function choosePort(directory: DataDirectory): Promise<number> {
  const last = Number(await unlessMissing(readFile(directory.port, 'utf8')));
  if (Number.isInteger(last) && last > 0 && last < 65_536) {
    const port = await tryPort(last);
    if (port !== undefined) return port;
  }
  const port = await tryPort(0);
  if (port !== undefined) return port;
  throw new EmbeddedPostgresError('There is no free TCP port on 127.0.0.1. End some programs and try again.');
}

async function tryPort(port: number): Promise<number | undefined> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.on('error', (error) => {
      if (errorCode(error) === 'EADDRINUSE' || errorCode(error) === 'EACCES') resolve(undefined);
      else reject(error);
    });
    server.listen({ host: '127.0.0.1', port }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? address?.port : undefined));
    });
  });
}

/** Puts a log aside that has grown large; returns where the next entry starts. */
async function rotateLog(path: string): Promise<number> {
  const size = (await unlessMissing(stat(path)))?.size ?? 0;
  if (size <= maxLogBytes) return size;
  await rename(path, `${path}.1`);
  return 0;
}

async function readLogFrom(path: string, start: number): Promise<string> {
  return (await readFile(path)).subarray(start).toString('utf8');
}

function judgeFailure(directory: DataDirectory, log: string): LaunchOutcome {
  if (/could not bind .* address: Address already in use/.test(log)) return 'port taken';
  if (/pre-existing shared memory block|lock file "postmaster\.pid" already exists/.test(log)) {
    return 'predecessor lingers';
  }
  const lines = log.split('\n').filter((line) => line !== '');
  const reason = lines.find((line) => /FATAL|PANIC/.test(line)) ?? lines.at(-1) ?? 'it said nothing';
  throw new EmbeddedPostgresError(
    `Postgres did not start: ${reason.replace(/^.*?((FATAL|PANIC): )/, '$1')}. More is in ${directory.log}.`,
  );
}
