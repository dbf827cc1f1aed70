import { mkdir, open, readdir, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { EmbeddedPostgresError, errorCode, unlessMissing } from './error.ts';
import { userName } from './run-as.ts';

const markerName = 'RUNPLANE_DATA_DIRECTORY';
const markerText = `This directory belongs to Runplane: it holds its Postgres data (postgres/), the
password (password), the port (port) and the log (postgres.log).
Delete it as a whole, and only while nothing uses it, to start afresh.
`;

/** Where things lie in a data directory. */
export interface DataDirectory {
  readonly root: string;
  /** The Postgres cluster (PGDATA). It only appears once initdb has fully succeeded. */
  readonly cluster: string;
  readonly locks: string;
  readonly members: string;
  readonly password: string;
  /** The port of the last start, kept so that the address stays the same if it can. */
  readonly port: string;
  readonly log: string;
}

/**
 * Makes sure that the directory exists and is ours to use, and refuses it
 * without changing anything otherwise.
 */
export async function claimDataDirectory(dataDir: string, postgresMajor: string): Promise<DataDirectory> {
  const path = resolve(dataDir);
  const existing = await unlessMissing(stat(path));
  if (existing === undefined) {
    await mkdir(dirname(path), { recursive: true });
    await createDirectory(path);
  } else if (!existing.isDirectory()) {
    throw new EmbeddedPostgresError(`${path} is not a directory. Choose another data directory.`);
  }
  await refuseOtherOwner(path);
  await refuseForeignContent(path);
  const root = await realpath(path);
  const cluster = join(root, 'postgres');
  await refuseOtherMajorVersion(root, cluster, postgresMajor);
  const [locks, members] = [join(root, 'locks'), join(root, 'members')];
  await createMarker(root);
  await mkdir(locks, { recursive: true, mode: 0o700 });
  await mkdir(members, { recursive: true, mode: 0o700 });
  return {
    root,
    cluster,
    locks,
    members,
    password: join(root, 'password'),
    port: join(root, 'port'),
    log: join(root, 'postgres.log'),
  };
}

/** Replaces a file as a whole and durably: after a crash it has the old or the new content. */
export async function writeFileDurably(path: string, content: string): Promise<void> {
  const temporary = `${path}.new`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.chmod(0o600);
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/** Makes created and renamed entries of a directory durable. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function createDirectory(path: string): Promise<void> {
  try {
    // Linux hands the cluster to Postgres by working directory, so nobody else
    // needs to pass through; elsewhere the user that root runs it as must.
    await mkdir(path, { mode: process.platform === 'linux' ? 0o700 : 0o711 });
  } catch (error) {
    // Another process that starts at the same moment may have been faster.
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}

async function refuseOtherOwner(path: string): Promise<void> {
  const { uid } = await stat(path);
  const ownUid = process.geteuid?.();
  if (uid === ownUid) return;
  throw new EmbeddedPostgresError(
    `The data directory ${path} belongs to the user ${await userName(uid)}, but Runplane runs as ` +
      `${await userName(ownUid ?? -1)}. Run it as the owner, or choose another data directory.`,
  );
}

async function refuseForeignContent(path: string): Promise<void> {
  const entries = await readdir(path);
  if (entries.length === 0 || entries.includes(markerName)) return;
  const what = entries.includes('PG_VERSION') ? 'is a Postgres data directory that is' : 'has content but is';
  throw new EmbeddedPostgresError(
    `${path} ${what} not a Runplane data directory. ` +
      'Choose another data directory: an empty one, or one that does not exist yet.',
  );
}

async function refuseOtherMajorVersion(root: string, cluster: string, expected: string): Promise<void> {
  const found = (await unlessMissing(readFile(join(cluster, 'PG_VERSION'), 'utf8')))?.trim();
  if (found === undefined || found === expected) return;
  throw new EmbeddedPostgresError(
    `${root} holds data of Postgres ${found}, but this version of Runplane brings Postgres ${expected}. ` +
      'Use the version of Runplane that created it (and move the data with pg_dump and pg_restore), ' +
      'or choose another data directory.',
  );
}

async function createMarker(root: string): Promise<void> {
  try {
    // Only its existence counts, so a crash between creating and writing it does no harm.
    await writeFile(join(root, markerName), markerText, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}
