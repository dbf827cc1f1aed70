import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { chmod, chown, cp, mkdir, readdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findInstalledPackage, usableBinaries } from '../../src/db/embedded-postgres/binaries.ts';
import { chooseRunUser } from '../../src/db/embedded-postgres/run-as.ts';
import { joinEmbeddedPostgres } from '../../src/db/embedded-postgres.ts';
import {
  Host,
  hasSetpriv,
  isAlive,
  isRoot,
  query,
  repository,
  serverPid,
  temporaryDir,
} from './fixtures/embedded-postgres.ts';

const nobody = 65_534;
const asNobody = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'];
const nobodyCanRunNode =
  isRoot &&
  hasSetpriv &&
  spawnSync('setpriv', [...asNobody.slice(1), process.execPath, '--version']).status === 0;

const copiesOfRoot = '/var/lib/runplane';

describe.skipIf(!isRoot)('as root (needs root)', () => {
  it('runs Postgres as another user, with the data in a folder that only root may enter', async () => {
    const parent = await temporaryDir();
    expect(statSync(parent).mode & 0o777).toBe(0o700);
    const dataDir = join(parent, 'deeper', 'data');
    const server = await joinEmbeddedPostgres({ dataDir });
    const uid = statSync(`/proc/${serverPid(dataDir)}`).uid;
    expect(uid).not.toBe(0);
    expect(statSync(join(dataDir, 'postgres')).uid).toBe(uid);
    expect(statSync(join(dataDir, 'postgres')).mode & 0o777).toBe(0o700);
    expect(statSync(join(dataDir, 'password')).uid).toBe(0);
    expect(await query(server.url, `SELECT to_tsvector('english', 'running') AS vector`)).toEqual([
      { vector: "'run':1" },
    ]);
    await server.leave();
  });

  it('works if the whole installation is readable by root only, with a copy of the programs', async () => {
    const hadCopies = existsSync(copiesOfRoot);
    const checkout = join(await temporaryDir(), 'checkout');
    await copyInstallation(checkout);
    await makePrivate(checkout);
    const host = new Host(join(checkout, '.runplane'), { root: checkout });
    try {
      const url = await host.url();
      expect(host.progress).toContainEqual(
        expect.stringMatching(/^(copying the Postgres programs to |creating)/),
      );
      expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
      const program = spawnSync('readlink', [
        `/proc/${serverPid(join(checkout, '.runplane'))}/exe`,
      ]).stdout.toString();
      expect(program).toMatch(new RegExp(`^${copiesOfRoot}/postgres-`));
      await host.leave();
    } finally {
      if (!hadCopies) await rm(copiesOfRoot, { recursive: true, force: true });
    }
  });

  it('replaces a damaged copy, and leaves one in peace that works', async () => {
    const { installed, copiesDir, copy, user } = await privatePackage();
    await mkdir(join(copy, 'bin'), { recursive: true });
    const progress: string[] = [];
    const onProgress = (message: string): number => progress.push(message);
    const binaries = await usableBinaries(installed, user, { copiesDir, onProgress });
    expect(binaries.postgres).toBe(join(copy, 'bin', 'postgres'));
    expect(progress).toHaveLength(1);
    const { ino } = statSync(copy);
    await usableBinaries(installed, user, { copiesDir, onProgress });
    expect(progress).toHaveLength(1);
    expect(statSync(copy).ino).toBe(ino);
  });

  it('makes one copy when several directories need it at the same moment', async () => {
    const { installed, copiesDir, copy, user } = await privatePackage();
    const options = { copiesDir, onProgress: () => undefined };
    const all = await Promise.all([1, 2, 3].map(() => usableBinaries(installed, user, options)));
    expect(new Set(all.map((binaries) => binaries.initdb)).size).toBe(1);
    expect((await readdir(copiesDir)).map((name) => join(copiesDir, name))).toEqual([copy]);
  });

  it('restores the library links if the install script of the package did not run', async () => {
    const { installed, copiesDir, user } = await privatePackage();
    const libraries = join(installed.nativeDir, 'lib');
    for (const entry of readdirSync(libraries, { withFileTypes: true })) {
      if (entry.isSymbolicLink()) await rm(join(libraries, entry.name));
    }
    const { postgres } = await usableBinaries(installed, user, { copiesDir, onProgress: () => undefined });
    expect(spawnSync(postgres, ['--version']).stdout.toString()).toMatch(/^postgres \(PostgreSQL\) 18/);
  });

  it('explains itself if the programs do not run at all', async () => {
    const { installed, copiesDir, user } = await privatePackage();
    await rm(join(installed.nativeDir, 'lib', 'libicui18n.so.60.2'));
    await expect(usableBinaries(installed, user, { copiesDir, onProgress: () => undefined })).rejects.toThrow(
      /programs do not run on this machine \(.*libicui18n.*\)\. Use a Postgres server of your own/,
    );
  });

  it('runs as the owner of data that exists', async () => {
    const cluster = await temporaryDir();
    await chown(cluster, 4_321, 8_765);
    expect(await chooseRunUser(cluster)).toEqual({ uid: 4_321, gid: 8_765 });
  });
});

describe.skipIf(!nobodyCanRunNode)(
  'as an ordinary user (needs root, setpriv, and node where everybody can run it)',
  () => {
    it('runs Postgres as that user', async () => {
      const parent = await temporaryDir();
      await chown(parent, nobody, nobody);
      const dataDir = join(parent, 'data');
      const host = new Host(dataDir, { command: asNobody });
      const url = await host.url();
      const pid = serverPid(dataDir);
      expect(statSync(`/proc/${pid}`).uid).toBe(nobody);
      expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);

      await expect(joinEmbeddedPostgres({ dataDir })).rejects.toThrow(/belongs to the user "nobody"/);
      await host.leave();
      expect(isAlive(pid)).toBe(false);
    });

    it('is refused a directory of root, and one that it cannot create', async () => {
      const parent = await temporaryDir();
      await chmod(parent, 0o755);
      const dataDir = join(parent, 'data');
      expect(await new Host(dataDir, { command: asNobody }).error()).toMatch(
        /EmbeddedPostgresError: .*EACCES.*permissions/,
      );
      const server = await joinEmbeddedPostgres({ dataDir });
      await chmod(dataDir, 0o755);
      expect(await new Host(dataDir, { command: asNobody }).error()).toMatch(/belongs to the user "root"/);
      await server.leave();
    });
  },
);

/** A copy of the installed package below a folder that only root may enter. */
async function privatePackage(): Promise<{
  installed: Awaited<ReturnType<typeof findInstalledPackage>>;
  copiesDir: string;
  copy: string;
  user: Awaited<ReturnType<typeof chooseRunUser>>;
}> {
  const original = await findInstalledPackage();
  const nativeDir = join(await temporaryDir(), 'native');
  await cp(original.nativeDir, nativeDir, { recursive: true, verbatimSymlinks: true });
  const reachable = await temporaryDir();
  await chmod(reachable, 0o755);
  const copiesDir = join(reachable, 'copies');
  return {
    installed: { ...original, nativeDir },
    copiesDir,
    copy: join(copiesDir, `postgres-${original.version}-${process.platform}-${process.arch}`),
    user: await chooseRunUser(join(reachable, 'none')),
  };
}

/** A checkout with its own copy of the Postgres packages; the others are links. */
async function copyInstallation(checkout: string): Promise<void> {
  const modules = join(checkout, 'node_modules');
  await mkdir(modules, { recursive: true });
  for (const name of [
    'package.json',
    'tsconfig.json',
    'src/db/embedded-postgres.ts',
    'src/db/embedded-postgres',
    'test/db/fixtures',
  ]) {
    await cp(join(repository, name), join(checkout, name), { recursive: true });
  }
  for (const name of await readdir(join(repository, 'node_modules'))) {
    const [from, to] = [join(repository, 'node_modules', name), join(modules, name)];
    if (name === '@embedded-postgres' || name === 'embedded-postgres') {
      await cp(from, to, { recursive: true, verbatimSymlinks: true });
    } else await symlink(from, to);
  }
}

/** What an installation by root with umask 077 looks like. */
async function makePrivate(dir: string): Promise<void> {
  await chmod(dir, 0o700);
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue;
    const path = join(entry.parentPath, entry.name);
    await chmod(path, statSync(path).mode & 0o700);
  }
}
