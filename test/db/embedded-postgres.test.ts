import { existsSync, readFileSync, statSync } from 'node:fs';
import { chown, cp, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EmbeddedPostgresError, joinEmbeddedPostgres } from '../../src/db/embedded-postgres.ts';
import {
  isAlive,
  isRoot,
  processesIn,
  query,
  serverPid,
  snapshot,
  temporaryDir,
  until,
} from './fixtures/embedded-postgres.ts';

describe('a fresh directory', () => {
  it('gets a working database, and keeps its data across a stop', async () => {
    const dataDir = join(await temporaryDir(), 'a', '.runplane');
    const progress: string[] = [];
    const server = await joinEmbeddedPostgres({ dataDir, onProgress: (message) => progress.push(message) });

    const { hostname, port, password, pathname } = new URL(server.url);
    expect([hostname, pathname]).toEqual(['127.0.0.1', '/runplane']);
    expect(readFileSync(join(dataDir, 'port'), 'utf8')).toBe(port);
    expect(readFileSync(join(dataDir, 'password'), 'utf8')).toBe(password);
    expect(password.length).toBeGreaterThanOrEqual(32);
    expect(statSync(join(dataDir, 'password')).mode & 0o777).toBe(0o600);
    expect(progress[0]).toBe(`creating the database in ${dataDir} (first start only)`);
    await query(server.url, 'CREATE TABLE kept AS SELECT 42 AS answer');

    const pid = serverPid(dataDir);
    await server.leave();
    await server.leave();
    expect(isAlive(pid)).toBe(false);

    const again = await joinEmbeddedPostgres({ dataDir });
    expect(again.url).toBe(server.url);
    expect(await query(again.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
    await again.leave();
  });

  it('runs with durable and bounded settings, a portable UTF-8 locale and password login only', async () => {
    const dataDir = await temporaryDir();
    const server = await joinEmbeddedPostgres({ dataDir, settings: { work_mem: '5MB' } });
    const rows = await query(
      server.url,
      `SELECT name, current_setting(name) AS value FROM unnest(ARRAY['fsync', 'synchronous_commit', 'full_page_writes',
        'listen_addresses', 'unix_socket_directories', 'max_connections', 'shared_buffers', 'max_wal_size',
        'server_encoding', 'data_checksums', 'work_mem']) AS name`,
    );
    expect(Object.fromEntries(rows.map((row) => [row['name'], row['value']]))).toEqual({
      fsync: 'on',
      synchronous_commit: 'on',
      full_page_writes: 'on',
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      max_connections: '200',
      shared_buffers: '256MB',
      max_wal_size: '2GB',
      server_encoding: 'UTF8',
      data_checksums: 'on',
      work_mem: '5MB',
    });
    expect(await query(server.url, `SELECT upper('ä') AS upper, 'a' < 'B' AS dictionary`)).toEqual([
      { upper: 'Ä', dictionary: false },
    ]);
    const wrongPassword = new URL(server.url);
    wrongPassword.password = 'wrong';
    await expect(query(wrongPassword.href, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
    await server.leave();
  });

  it('keeps the password and the content of statements out of the log and the process list', async () => {
    const dataDir = await temporaryDir();
    const server = await joinEmbeddedPostgres({ dataDir });
    const { password } = new URL(server.url);
    await expect(query(server.url, `SELECT 'my-secret'::int`)).rejects.toThrow();
    await query(server.url, `CREATE TABLE t (secret text PRIMARY KEY); INSERT INTO t VALUES ('my-key')`);
    await expect(query(server.url, `INSERT INTO t VALUES ('my-key')`)).rejects.toThrow(/duplicate/);
    const commandLine = readFileSync(`/proc/${serverPid(dataDir)}/cmdline`, 'utf8');
    await server.leave();
    const log = readFileSync(join(dataDir, 'postgres.log'), 'utf8');
    expect(log).toContain('duplicate key');
    for (const text of [log, commandLine]) {
      expect(text).not.toContain(password);
      expect(text).not.toContain('my-key');
    }
    expect(log).not.toMatch(/STATEMENT/);
  });

  it('gets the database also if the first start was cut short before creating it', async () => {
    const dataDir = await temporaryDir();
    const server = await joinEmbeddedPostgres({ dataDir });
    await query(server.url.replace(/runplane$/, 'postgres'), 'DROP DATABASE runplane');
    const other = await joinEmbeddedPostgres({ dataDir });
    expect(await query(other.url, 'SELECT current_database() AS name')).toEqual([{ name: 'runplane' }]);
    await Promise.all([server.leave(), other.leave()]);
  });

  it('works at a path that is too long for a socket and has special characters', async () => {
    const dataDir = join(await temporaryDir(), 'x'.repeat(120), 'it\'s -c "90%" $HOME ü');
    const server = await joinEmbeddedPostgres({ dataDir });
    const second = await joinEmbeddedPostgres({ dataDir });
    expect(second.url).toBe(server.url);
    const pid = serverPid(dataDir);
    await second.leave();
    expect(isAlive(pid)).toBe(true);
    await server.leave();
    expect(isAlive(pid)).toBe(false);
  });
});

describe('joining twice in one process', () => {
  it('counts both, also when both start at the same moment', async () => {
    const dataDir = await temporaryDir();
    const [first, second] = await Promise.all([
      joinEmbeddedPostgres({ dataDir }),
      joinEmbeddedPostgres({ dataDir }),
    ]);
    const third = await joinEmbeddedPostgres({ dataDir });
    expect(new Set([first.url, second.url, third.url]).size).toBe(1);
    const pid = serverPid(dataDir);
    await Promise.all([first.leave(), first.leave(), third.leave()]);
    expect(await query(second.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await second.leave();
    expect(isAlive(pid)).toBe(false);
  });
});

describe('a directory that changes behind the back of the server', () => {
  it('stops the server if it is deleted, and does not bring it back', async () => {
    const parent = await temporaryDir();
    const dataDir = join(parent, 'data');
    const server = await joinEmbeddedPostgres({ dataDir });
    const pid = serverPid(dataDir);
    await rm(dataDir, { recursive: true, maxRetries: 5 });
    await server.leave();
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(dataDir)).toBe(false);
  });

  it('is the same directory after a move, with the same server', async () => {
    const parent = await temporaryDir();
    const [before, after] = [join(parent, 'before'), join(parent, 'after')];
    await joinEmbeddedPostgres({ dataDir: before });
    const pid = serverPid(before);
    await rename(before, after);
    const server = await joinEmbeddedPostgres({ dataDir: after });
    expect(serverPid(after)).toBe(pid);
    expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('has a server of its own as a copy, though the copied pid file names the one of the original', async () => {
    const parent = await temporaryDir();
    const [dataDir, copyDir] = [join(parent, 'original'), join(parent, 'copy')];
    const original = await joinEmbeddedPostgres({ dataDir });
    const pid = serverPid(dataDir);
    await query(original.url, 'CHECKPOINT');
    await cp(dataDir, copyDir, { recursive: true, preserveTimestamps: true });
    if (isRoot) await takeOverOwners(dataDir, copyDir);
    const copy = await joinEmbeddedPostgres({ dataDir: copyDir });
    expect(copy.url).not.toBe(original.url);
    expect(serverPid(copyDir)).not.toBe(pid);
    expect(await query(original.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await original.leave();
    expect(isAlive(pid)).toBe(false);
  });

  async function takeOverOwners(from: string, to: string): Promise<void> {
    for (const name of await readdir(from, { recursive: true })) {
      const { uid, gid } = statSync(join(from, name));
      if (existsSync(join(to, name))) await chown(join(to, name), uid, gid);
    }
  }
});

describe('a directory of somebody else', () => {
  async function expectRefusal(dataDir: string, message: RegExp): Promise<void> {
    const before = snapshot(dataDir);
    const refusal = await joinEmbeddedPostgres({ dataDir }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(EmbeddedPostgresError);
    expect((refusal as Error).message).toMatch(message);
    expect(snapshot(dataDir)).toEqual(before);
  }

  it('is refused if it has other content', async () => {
    const dataDir = await temporaryDir();
    await writeFile(join(dataDir, 'notes.txt'), 'mine');
    await expectRefusal(dataDir, /has content but is not a Runplane data directory.*Choose another/);
  });

  it('is refused if it is a plain Postgres data directory', async () => {
    const dataDir = await temporaryDir();
    await writeFile(join(dataDir, 'PG_VERSION'), '18\n');
    await expectRefusal(dataDir, /is a Postgres data directory that is not a Runplane data directory/);
  });

  it('is refused if its data is of another major version', async () => {
    const dataDir = await temporaryDir();
    await writeFile(join(dataDir, 'RUNPLANE_DATA_DIRECTORY'), '');
    await mkdir(join(dataDir, 'postgres'));
    await writeFile(join(dataDir, 'postgres', 'PG_VERSION'), '17\n');
    await expectRefusal(
      dataDir,
      /holds data of Postgres 17, but this version of Runplane brings Postgres 18.*pg_dump/,
    );
  });

  it.skipIf(!isRoot)('is refused if it belongs to another user (needs root)', async () => {
    const dataDir = await temporaryDir();
    await chown(dataDir, 65_534, 65_534);
    await expectRefusal(dataDir, /belongs to the user .*, but Runplane runs as "root".*Run it as the owner/);
  });

  it('is refused if it is a file', async () => {
    const file = join(await temporaryDir(), 'file');
    await writeFile(file, 'text');
    await expect(joinEmbeddedPostgres({ dataDir: file })).rejects.toThrow(/is not a directory/);
    expect(readFileSync(file, 'utf8')).toBe('text');
  });

  it('is explained if the password is lost, and the server does not stay behind', async () => {
    const dataDir = await temporaryDir();
    const server = await joinEmbeddedPostgres({ dataDir });
    await server.leave();
    await writeFile(join(dataDir, 'password'), 'another-password');
    const failure = await joinEmbeddedPostgres({ dataDir }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(EmbeddedPostgresError);
    expect((failure as Error).message).toMatch(
      /does not accept the password in the file "password".*Restore/,
    );
    expect((failure as Error).message).not.toContain('another-password');
    await until('the server has ended', () => processesIn(join(dataDir, 'postgres')).length === 0);
  });

  it('is explained if Postgres does not start', async () => {
    const dataDir = await temporaryDir();
    const failure = await joinEmbeddedPostgres({ dataDir, settings: { shared_buffers: 'plenty' } }).catch(
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(EmbeddedPostgresError);
    expect((failure as Error).message).toMatch(/Postgres did not start: .*shared_buffers.*postgres\.log/);
  });
});
