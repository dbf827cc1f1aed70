import { stat } from 'node:fs/promises';
import { findInstalledPackage } from './embedded-postgres/binaries.ts';
import { claimDataDirectory, type DataDirectory } from './embedded-postgres/data-directory.ts';
import { withDirectoryLock } from './embedded-postgres/directory-lock.ts';
import { EmbeddedPostgresError, errorCode, unlessMissing } from './embedded-postgres/error.ts';
import { addMember, countLiveMembers, removeMember } from './embedded-postgres/members.ts';
import { findPostmaster, servesCluster, stopPostmaster } from './embedded-postgres/postmaster.ts';
import { ensureServer, type Server, type ServerOptions } from './embedded-postgres/server.ts';

export { EmbeddedPostgresError };

/** Membership in the Postgres server of a data directory. */
export interface EmbeddedPostgres {
  /** Connection URL of the database `runplane`, over loopback TCP with a generated password. */
  readonly url: string;
  /** Leaves the server; the last live process on the directory stops Postgres (fast shutdown, awaited). Calling it twice is fine. */
  leave(): Promise<void>;
}

/** Options of {@link joinEmbeddedPostgres}. */
export interface EmbeddedPostgresOptions {
  /** The directory of the data, created if it does not exist; nothing else may be in it. */
  readonly dataDir: string;
  /** Hears in plain words about steps that take a while. */
  readonly onProgress?: (message: string) => void;
  /** Postgres settings, which apply if this call starts the server. */
  readonly settings?: Readonly<Record<string, string>>;
  /** How long to wait at most for Postgres to start or to stop, and for other processes doing so; 120 s by default. */
  readonly timeoutMs?: number;
}

/**
 * Joins the Postgres server of a data directory. The first process to join
 * creates the data if need be and starts the server, others share it, and the
 * last one to leave stops it. If the processes get killed, the server stays,
 * and the next one to join adopts it.
 *
 * @throws EmbeddedPostgresError if the directory or the machine does not allow it
 */
export async function joinEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { onProgress = () => undefined, settings = {}, timeoutMs = 120_000 } = options;
  return explainSystemErrors(options.dataDir, async () => {
    if (process.platform === 'win32') {
      throw new EmbeddedPostgresError(
        'The embedded Postgres works on Linux and macOS. On Windows use WSL, or a Postgres server of your own.',
      );
    }
    const installed = await findInstalledPackage();
    const directory = await claimDataDirectory(options.dataDir, installed.major);
    return withLock(directory, timeoutMs, onProgress, async () => {
      const { pid, url } = await ensureServerOrStop(directory, {
        installed,
        settings,
        timeoutMs,
        onProgress,
      });
      const member = await addMember(directory.members);
      let leaving: Promise<void> | undefined;
      return { url, leave: () => (leaving ??= leave(directory, { member, pid }, timeoutMs, onProgress)) };
    });
  });
}

async function leave(
  directory: DataDirectory,
  joined: { member: string; pid: number },
  timeoutMs: number,
  onProgress: (message: string) => void,
): Promise<void> {
  await explainSystemErrors(directory.root, async () => {
    if ((await unlessMissing(stat(directory.locks))) === undefined) {
      // Somebody deleted the directory, so nobody can use the server any more.
      if (await servesCluster(joined.pid, directory)) await stopPostmaster(joined.pid, timeoutMs);
      return;
    }
    await withLock(directory, timeoutMs, onProgress, async () => {
      await removeMember(directory.members, joined.member);
      await stopUnlessUsed(directory, timeoutMs);
    });
  });
}

/** Leaves no server behind that came up but is of no use to anybody. */
async function ensureServerOrStop(directory: DataDirectory, options: ServerOptions): Promise<Server> {
  try {
    return await ensureServer(directory, options);
  } catch (error) {
    // One that goes on starting is left to do so: that may be a long recovery, which a stop would only prolong.
    if ((await findPostmaster(directory))?.status === 'ready')
      await stopUnlessUsed(directory, options.timeoutMs);
    throw error;
  }
}

async function stopUnlessUsed(directory: DataDirectory, timeoutMs: number): Promise<void> {
  if ((await countLiveMembers(directory.members)) > 0) return;
  const postmaster = await findPostmaster(directory);
  if (postmaster !== undefined) await stopPostmaster(postmaster.pid, timeoutMs);
}

async function withLock<T>(
  directory: DataDirectory,
  timeoutMs: number,
  onProgress: (message: string) => void,
  action: () => Promise<T>,
): Promise<T> {
  const onWait = (pid: string): void =>
    onProgress(`waiting for process ${pid}, which is starting or stopping Postgres on ${directory.root}`);
  return withDirectoryLock(directory.locks, { timeoutMs, onWait }, action);
}

/** Turns errors of the operating system into ones that say where they hit and what to do. */
async function explainSystemErrors<T>(dataDir: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof EmbeddedPostgresError || errorCode(error) === undefined || !(error instanceof Error))
      throw error;
    throw new EmbeddedPostgresError(
      `The data directory ${dataDir} cannot be used: ${error.message}. Check its permissions and the disk, ` +
        'or choose another data directory.',
      { cause: error },
    );
  }
}
