import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { joinEmbeddedPostgres } from '../../src/db/embedded-postgres.ts';
import {
  Host,
  isAlive,
  processesIn,
  query,
  serverPid,
  signal,
  temporaryDir,
  until,
} from './fixtures/embedded-postgres.ts';

describe('a server that was killed', () => {
  it('is started anew at the same address, with what was committed', async () => {
    const dataDir = await temporaryDir();
    const first = await joinEmbeddedPostgres({ dataDir });
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    const pid = serverPid(dataDir);
    process.kill(pid, 'SIGKILL');
    await until('it is gone', () => !isAlive(pid));
    const second = await joinEmbeddedPostgres({ dataDir });
    expect(serverPid(dataDir)).not.toBe(pid);
    expect(second.url).toBe(first.url);
    expect(await query(first.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
    await Promise.all([first.leave(), second.leave()]);
  });

  it('does not keep the next one from starting if another process has its pid now', async () => {
    const dataDir = await temporaryDir();
    await (await joinEmbeddedPostgres({ dataDir })).leave();
    const bystander = new Host(await temporaryDir());
    const bystanderUrl = await bystander.url();
    for (const pid of [process.pid, serverPid(bystanderDirOf(bystander))]) {
      const pidFile = [pid, join(dataDir, 'postgres'), 0, 1, '', '127.0.0.1', '  1  1', 'ready   ', ''].join(
        '\n',
      );
      await writeFile(join(dataDir, 'postgres', 'postmaster.pid'), pidFile);
      const server = await joinEmbeddedPostgres({ dataDir });
      expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
      await server.leave();
    }
    expect(await query(bystanderUrl, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await bystander.leave();
  });

  function bystanderDirOf(host: Host): string {
    return host.child.spawnargs.at(-1) ?? '';
  }

  it('is waited for as long as a backend of it is still there', async () => {
    const dataDir = await temporaryDir();
    const host = new Host(dataDir);
    await host.url();
    const pid = serverPid(dataDir);
    const backend = processesIn(join(dataDir, 'postgres')).find((candidate) => candidate !== pid) ?? 0;
    signal(backend, 'SIGSTOP');
    signal(pid, 'SIGKILL');
    await host.killAndWait();

    await expect(joinEmbeddedPostgres({ dataDir, timeoutMs: 5_000 })).rejects.toThrow(
      /did not get ready within 5 s: processes of the previous Postgres on this data have not ended yet. Try again/,
    );
    const progress: string[] = [];
    const joining = joinEmbeddedPostgres({ dataDir, onProgress: (message) => progress.push(message) });
    await until('the wait is announced', () =>
      progress.some((message) => message.includes('have not ended yet')),
    );
    signal(backend, 'SIGCONT');
    const server = await joining;
    expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await server.leave();
  });
});

describe('a server that does not answer', () => {
  it('is replaced if nobody uses it', async () => {
    const dataDir = await temporaryDir();
    const host = new Host(dataDir);
    await host.url();
    await host.killAndWait();
    const pid = serverPid(dataDir);
    signal(pid, 'SIGSTOP');
    const server = await joinEmbeddedPostgres({ dataDir, timeoutMs: 6_000 });
    expect(isAlive(pid)).toBe(false);
    expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await server.leave();
  });

  it('is left alone if somebody uses it, with an explanation', async () => {
    const dataDir = await temporaryDir();
    const host = new Host(dataDir);
    const url = await host.url();
    const pid = serverPid(dataDir);
    signal(pid, 'SIGSTOP');
    await expect(joinEmbeddedPostgres({ dataDir, timeoutMs: 1_000 })).rejects.toThrow(
      /does not answer, and other processes still use it/,
    );
    signal(pid, 'SIGCONT');
    expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await host.leave();
  });
});
