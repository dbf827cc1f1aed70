import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type InstalledPackage, type PostgresBinaries, usableBinaries } from './binaries.ts';
import { ensureCluster } from './cluster.ts';
import { askServer, connectionUrl } from './connection.ts';
import { type DataDirectory, writeFileDurably } from './data-directory.ts';
import { EmbeddedPostgresError, unlessMissing } from './error.ts';
import { type LaunchOutcome, launchPostmaster } from './launch.ts';
import { countLiveMembers } from './members.ts';
import {
  disarmStalePidFile,
  endUnresponsivePostmaster,
  findPostmaster,
  type Postmaster,
} from './postmaster.ts';
import { chooseRunUser, type RunUser } from './run-as.ts';

/** What it takes to get a server running on a data directory. */
export interface ServerOptions {
  readonly installed: InstalledPackage;
  readonly settings: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly onProgress: (message: string) => void;
}

/** A server that works. */
export interface Server {
  readonly pid: number;
  readonly url: string;
}

/**
 * Makes sure that a working server runs on the directory, whatever state the
 * last one was left in. Call it under the directory's lock.
 */
export async function ensureServer(directory: DataDirectory, options: ServerOptions): Promise<Server> {
  let deadline = Date.now() + options.timeoutMs;
  let launch: Launch | undefined;
  let obstacle: string | undefined;
  for (;;) {
    const postmaster = await findPostmaster(directory);
    if (postmaster?.status === 'ready') {
      const result = await adopt(directory, postmaster, options);
      if (typeof result === 'object') return result;
      // The successor of a server that had to be ended gets the full time.
      if (result === 'ended') deadline = Date.now() + options.timeoutMs;
      else await sleep(50);
    } else if (postmaster !== undefined) {
      obstacle = `Postgres (process ${postmaster.pid}) is ${postmaster.status || 'starting'}`;
      await sleep(20);
    } else {
      launch ??= await prepareLaunch(directory, options);
      const hindrance = await launch(deadline);
      if (hindrance === undefined) continue;
      // The end of the time cuts a launch short; then what the ones before it met is what is in the way.
      if (hindrance === hindrances['still starting'] && obstacle !== undefined) break;
      if (hindrance !== obstacle) options.onProgress(hindrance);
      obstacle = hindrance;
      await sleep(250);
    }
    if (Date.now() >= deadline) break;
  }
  throw new EmbeddedPostgresError(
    `Postgres did not get ready within ${Math.round(options.timeoutMs / 1000)} s: ` +
      `${obstacle ?? 'it does not stay up'}. Try again in a while; the log is ${directory.log}.`,
  );
}

/** Launches the server once; returns what was in the way, if anything. */
type Launch = (deadline: number) => Promise<string | undefined>;

async function prepareLaunch(directory: DataDirectory, options: ServerOptions): Promise<Launch> {
  const user = await chooseRunUser(directory.cluster);
  const { postgres: program } = await prepareCluster(directory, user, options);
  options.onProgress('starting Postgres');
  return async (deadline) => {
    await disarmStalePidFile(directory);
    const outcome = await launchPostmaster(directory, {
      program,
      user,
      settings: options.settings,
      deadline,
    });
    return hindrances[outcome];
  };
}

const hindrances: Readonly<Record<LaunchOutcome, string | undefined>> = {
  ready: undefined,
  'still starting': 'Postgres is still starting, perhaps recovering after a crash',
  'port taken': 'another program took the port chosen for Postgres',
  'predecessor lingers': 'processes of the previous Postgres on this data have not ended yet',
};

async function prepareCluster(
  directory: DataDirectory,
  user: RunUser | undefined,
  { installed, onProgress }: ServerOptions,
): Promise<PostgresBinaries> {
  // Root's own folders may be closed to the user of Postgres, /var/lib is not.
  const copiesDir = user === undefined ? join(directory.root, 'programs') : '/var/lib/runplane';
  const binaries = await usableBinaries(installed, user, { copiesDir, onProgress });
  await ensureCluster(directory, binaries, user, onProgress);
  return binaries;
}

/** The server that runs, if it works; one that does not is ended, unless somebody uses it. */
async function adopt(
  directory: DataDirectory,
  postmaster: Postmaster,
  options: ServerOptions,
): Promise<Server | 'not yet' | 'ended'> {
  const password = await unlessMissing(readFile(directory.password, 'utf8'));
  if (password === undefined) {
    throw new EmbeddedPostgresError(
      `The file ${directory.password} with the password of the database is missing. ` +
        'Restore it, or choose another data directory.',
    );
  }
  const answer = await askServer(postmaster.port, password, Math.min(5_000, options.timeoutMs / 2));
  if (answer === 'ready') {
    const port = String(postmaster.port);
    if ((await unlessMissing(readFile(directory.port, 'utf8'))) !== port)
      await writeFileDurably(directory.port, port);
    return { pid: postmaster.pid, url: connectionUrl(postmaster.port, password) };
  }
  if (answer === 'not yet') return answer;
  if ((await countLiveMembers(directory.members)) > 0) {
    throw new EmbeddedPostgresError(
      `Postgres (process ${postmaster.pid}) on ${directory.root} does not answer, and other processes still use it. ` +
        'End those, then try again.',
    );
  }
  options.onProgress(`ending Postgres (process ${postmaster.pid}), which does not answer`);
  await endUnresponsivePostmaster(postmaster.pid, options.timeoutMs / 2);
  return 'ended';
}
