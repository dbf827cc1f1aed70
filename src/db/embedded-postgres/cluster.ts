import { randomBytes } from 'node:crypto';
import { chown, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { PostgresBinaries } from './binaries.ts';
import { type DataDirectory, syncDirectory, writeFileDurably } from './data-directory.ts';
import { EmbeddedPostgresError, unlessMissing } from './error.ts';
import { newToken } from './process-identity.ts';
import { type RunUser, runCommand } from './run-as.ts';

/** The superuser and the database, both created with the cluster. */
export const roleName = 'runplane';
export const databaseName = 'runplane';

const unfinishedPrefix = 'postgres.new-';

/**
 * The name under which the Postgres programs see the cluster. All of them get
 * it as their working directory. If they run as another user (Runplane being
 * root), that user may be unable to pass through the folders above, such as
 * /root; on Linux this name leads there regardless, which lets the data lie
 * where the user of Runplane wants it.
 */
export function clusterPathFor(user: RunUser | undefined, clusterDir: string): string {
  return user !== undefined && process.platform === 'linux' ? '/proc/self/cwd' : clusterDir;
}

/** Creates the cluster with a new password unless it exists. Call it under the directory's lock. */
export async function ensureCluster(
  directory: DataDirectory,
  binaries: PostgresBinaries,
  user: RunUser | undefined,
  onProgress: (message: string) => void,
): Promise<void> {
  await removeUnfinishedClusters(directory.root);
  if ((await unlessMissing(stat(directory.cluster))) !== undefined) return;
  onProgress(`creating the database in ${directory.root} (first start only)`);

  // The final name only ever shows a complete cluster, whatever gets killed on the way.
  const unfinished = join(directory.root, unfinishedPrefix + (await newToken()));
  await mkdir(unfinished, { mode: 0o700 });
  if (user !== undefined) await chown(unfinished, user.uid, user.gid);
  const password = randomBytes(24).toString('base64url');
  await runInitdb(directory, binaries, user, unfinished, password);
  await writeFileDurably(directory.password, password);
  await rename(unfinished, directory.cluster);
  await syncDirectory(directory.root);
}

async function removeUnfinishedClusters(root: string): Promise<void> {
  for (const name of await readdir(root)) {
    // The initdb of a killed process may still be running in there, hence the retries.
    if (name.startsWith(unfinishedPrefix)) {
      await rm(join(root, name), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    }
  }
}

async function runInitdb(
  directory: DataDirectory,
  binaries: PostgresBinaries,
  user: RunUser | undefined,
  unfinished: string,
  password: string,
): Promise<void> {
  const dataArgs = ['-D', clusterPathFor(user, unfinished)];
  const passwordFile = await openPasswordFile(`${unfinished}.password`, password, user);
  try {
    const created = await runCommand(
      binaries.initdb,
      [
        ...dataArgs,
        `--username=${roleName}`,
        '--auth=scram-sha-256',
        '--pwfile=/dev/stdin',
        '--encoding=UTF8',
        // The builtin provider gives C.UTF-8 on every machine, whatever locales it has.
        '--locale=C',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        '--no-sync',
        '--no-instructions',
      ],
      { user, cwd: unfinished, stdin: passwordFile.fd },
    );
    if (!created.succeeded) throw initdbError(directory, created.output);
  } finally {
    await passwordFile.close();
  }
  const synced = await runCommand(binaries.initdb, [...dataArgs, '--sync-only'], { user, cwd: unfinished });
  if (!synced.succeeded) throw initdbError(directory, synced.output);
}

/** An open file that initdb can read as its user, and that has no name any more which a crash could leave behind. */
async function openPasswordFile(
  path: string,
  password: string,
  user: RunUser | undefined,
): Promise<Awaited<ReturnType<typeof open>>> {
  const file = await open(path, 'wx+', 0o600);
  await rm(path);
  await file.write(password, 0);
  if (user !== undefined) await file.chown(user.uid, user.gid);
  return file;
}

function initdbError(directory: DataDirectory, output: string): EmbeddedPostgresError {
  const lines = output.split('\n').filter((line) => line !== '');
  const reason = lines.find((line) => /error|fatal|denied/i.test(line)) ?? lines.at(-1) ?? 'no output';
  return new EmbeddedPostgresError(
    `Creating the database in ${directory.root} failed: ${reason}. Nothing is left behind that a new attempt would stumble over.`,
  );
}
