import { chown, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DataDirectory } from './data-directory.ts';
import { EmbeddedPostgresError, errorCode, unlessMissing } from './error.ts';
import { commandLine, processStartMark } from './process-identity.ts';

/** A running Postgres server of a data directory. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  /** What it says of itself in its pid file: starting, ready, stopping, or empty so far. */
  readonly status: string;
}

/**
 * A made-up setting on the command line of the server names the cluster it
 * serves, as its -D may be a name that is the same for all of them.
 */
export const clusterSetting = 'runplane.data_directory';

/**
 * The server that runs on the cluster, if any. Believes the pid file only as
 * far as the process named there shows that it serves this cluster: the pid
 * may have been reused, or the file may be part of a copied directory.
 */
export async function findPostmaster(directory: DataDirectory): Promise<Postmaster | undefined> {
  const postmaster = await readPidFile(directory.cluster);
  if (postmaster === undefined) return undefined;
  return (await servesCluster(postmaster.pid, directory)) ? postmaster : undefined;
}

/** Whether the process is a live Postgres server of this very cluster. */
export async function servesCluster(pid: number, directory: DataDirectory): Promise<boolean> {
  const command = await commandLine(pid);
  if (command === undefined) return false;
  const servedCluster = new RegExp(`${clusterSetting}=(.+?)(?: -c |$)`).exec(command)?.[1];
  if (servedCluster === directory.cluster) return true;
  if (servedCluster === undefined && !/(^|\/)postgres .*-D/.test(command)) return false;
  // A server that was started under another name: perhaps by hand, perhaps
  // before the directory was moved, perhaps on other data.
  const isSame = await worksInDirectory(pid, directory.cluster);
  if (isSame !== undefined) return isSame;
  if (servedCluster !== undefined && (await isOtherCluster(servedCluster, pid, directory))) return false;
  throw new EmbeddedPostgresError(
    `The Postgres server with the process id ${pid} may be using the data in ${directory.root}, although it was started ` +
      'for another directory (was this one moved meanwhile?). If so, stop that server and try again; ' +
      `if not, delete ${join(directory.cluster, 'postmaster.pid')}.`,
  );
}

/** Sends Postgres a fast shutdown and waits until it has ended. */
export async function stopPostmaster(pid: number, timeoutMs: number): Promise<void> {
  if (!(await signalAndWait(pid, 'SIGINT', timeoutMs))) {
    throw new EmbeddedPostgresError(
      `Postgres (process ${pid}) has not stopped within ${Math.round(timeoutMs / 1000)} s of being asked to. ` +
        'It may still be writing its data; see the log in the data directory.',
    );
  }
}

/** Ends a server that does not answer, as gently as it lets us. The data survives any of this. */
export async function endUnresponsivePostmaster(pid: number, timeoutMs: number): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    if (await signalAndWait(pid, signal, Math.min(5_000, timeoutMs))) return;
  }
  throw new EmbeddedPostgresError(
    `Postgres (process ${pid}) neither answers nor ends. Restart the machine or find out what blocks it.`,
  );
}

/**
 * Makes a stale pid file harmless. Postgres gives up if any process has the
 * pid in it, even a zombie or one of somebody else, so the pid is replaced by
 * one that no system assigns. The rest stays: by it Postgres sees whether
 * backends of the former server still use the data.
 */
export async function disarmStalePidFile(directory: DataDirectory): Promise<void> {
  const path = join(directory.cluster, 'postmaster.pid');
  const content = await unlessMissing(readFile(path, 'utf8'));
  const pid = Number.parseInt(content ?? '', 10);
  if (content === undefined || !pidExists(pid)) return;
  const { uid, gid } = await stat(directory.cluster);
  // Via another name, for Postgres refuses an empty file.
  const temporary = `${path}.new`;
  await writeFile(temporary, content.replace(/^\d+/, String(2 ** 31 - 2)), { mode: 0o600 });
  await chown(temporary, uid, gid);
  await rename(temporary, path);
}

async function readPidFile(clusterDir: string): Promise<Postmaster | undefined> {
  const content = await unlessMissing(readFile(join(clusterDir, 'postmaster.pid'), 'utf8'));
  const lines = content?.split('\n') ?? [];
  const pid = Number.parseInt(lines[0] ?? '', 10);
  if (!(pid > 0)) return undefined;
  return { pid, port: Number.parseInt(lines[3] ?? '', 10), status: (lines[7] ?? '').trim() };
}

/** Whether it is the working directory of the process, which for a Postgres server is its cluster; undefined if that cannot be found out. */
async function worksInDirectory(pid: number, path: string): Promise<boolean | undefined> {
  if (process.platform !== 'linux') return undefined;
  try {
    return await isSameDirectory(`/proc/${pid}/cwd`, path);
  } catch (error) {
    if (errorCode(error) !== 'EACCES') throw error;
    // It is a process of another user, which even root may not look at in many
    // containers. Postgres only serves data of the user it runs as.
    const [served, own] = [await unlessMissing(stat(`/proc/${pid}`)), await stat(path)];
    return served?.uid === own.uid ? undefined : false;
  }
}

/** Whether the process serves another, existing cluster: then the pid file here is a copy of its, or outdated. */
async function isOtherCluster(
  servedCluster: string,
  pid: number,
  directory: DataDirectory,
): Promise<boolean> {
  if ((await readPidFile(servedCluster))?.pid !== pid) return false;
  return !(await isSameDirectory(servedCluster, directory.cluster));
}

async function isSameDirectory(a: string, b: string): Promise<boolean> {
  const [first, second] = [await unlessMissing(stat(a)), await unlessMissing(stat(b))];
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev;
}

/** Whether the process has ended in time. */
async function signalAndWait(pid: number, signal: NodeJS.Signals, timeoutMs: number): Promise<boolean> {
  const startMark = await processStartMark(pid);
  if (startMark === undefined) return true;
  sendSignal(pid, signal);
  for (const startedAt = Date.now(); Date.now() - startedAt < timeoutMs; ) {
    if ((await processStartMark(pid)) !== startMark) return true;
    await sleep(10);
  }
  return false;
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It ended by itself in the meantime.
    if (errorCode(error) !== 'ESRCH') throw error;
  }
}

function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}
