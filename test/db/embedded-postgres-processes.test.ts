import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
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

describe('several processes', () => {
  it('that start at the same moment share one server, which the last to leave stops', async () => {
    const dataDir = join(await temporaryDir(), 'data');
    const hosts = Array.from({ length: 5 }, () => new Host(dataDir));
    const urls = await Promise.all(hosts.map((host) => host.url()));
    expect(new Set(urls).size).toBe(1);
    expect(
      hosts.flatMap((host) => host.progress).filter((message) => message.startsWith('creating')),
    ).toHaveLength(1);
    expect(readFileSync(join(dataDir, 'postgres.log'), 'utf8').match(/starting PostgreSQL/g)).toHaveLength(1);
    const pid = serverPid(dataDir);
    const [last, ...others] = hosts;
    await Promise.all(others.map((host) => host.leave()));
    expect(await query(urls[0] ?? '', 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await last?.leave();
    expect(isAlive(pid)).toBe(false);
  });

  it('that come and go all the time always find a server, and leave none', async () => {
    const dataDir = join(await temporaryDir(), 'data');
    const comeAndGo = async (): Promise<void> => {
      for (let round = 0; round < 5; round += 1) {
        const server = await joinEmbeddedPostgres({ dataDir });
        expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
        await server.leave();
      }
    };
    await Promise.all([comeAndGo(), comeAndGo(), comeAndGo()]);
    expect(processesIn(join(dataDir, 'postgres'))).toEqual([]);
    expect(readdirSync(join(dataDir, 'members'))).toEqual([]);
    expect(readdirSync(join(dataDir, 'locks'))).toEqual([]);
  });

  it('that get killed do not count, whoever has their pid now', async () => {
    const dataDir = await temporaryDir();
    const server = await joinEmbeddedPostgres({ dataDir });
    const killed = new Host(dataDir);
    await killed.url();
    await killed.killAndWait();
    const pid = serverPid(dataDir);
    expect(isAlive(pid)).toBe(true);
    const [own = ''] = readdirSync(join(dataDir, 'members')).filter((name) =>
      name.startsWith(`${process.pid}-`),
    );
    const formerProcess = own.replace(/t\d+-/, 't1-');
    await writeFile(join(dataDir, 'members', formerProcess), '');
    await server.leave();
    expect(isAlive(pid)).toBe(false);
  });
});

describe('Postgres after its host process', () => {
  it.each(['SIGINT', 'SIGKILL'] as const)(
    'lives on when %s ends the process group, and is adopted',
    async (name) => {
      const dataDir = await temporaryDir();
      const host = new Host(dataDir);
      const url = await host.url();
      await query(url, 'CREATE TABLE kept AS SELECT 42 AS answer');
      const pid = serverPid(dataDir);
      await host.killAndWait(name);
      expect(isAlive(pid)).toBe(true);

      const server = await joinEmbeddedPostgres({ dataDir });
      expect([server.url, serverPid(dataDir)]).toEqual([url, pid]);
      expect(await query(server.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
      await server.leave();
      expect(isAlive(pid)).toBe(false);
    },
  );
});

describe('a first start', () => {
  it.each([
    ['with initdb', (host: Host) => host.kill('SIGKILL')],
    ['while initdb goes on', (host: Host) => signal(host.child.pid ?? 0, 'SIGKILL')],
  ])('that is killed %s leaves nothing that the next one stumbles over', async (_, kill) => {
    const dataDir = await temporaryDir();
    const host = new Host(dataDir);
    const unfinished = (): string[] =>
      readdirSync(dataDir).filter((name) => name.startsWith('postgres.new-'));
    await until('initdb is at work', () =>
      unfinished().some((name) => existsSync(join(dataDir, name, 'base', '1'))),
    );
    kill(host);
    await until('the host is dead', () => !isAlive(host.child.pid ?? 0));
    expect(existsSync(join(dataDir, 'postgres'))).toBe(false);

    const server = await joinEmbeddedPostgres({ dataDir });
    expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(unfinished()).toEqual([]);
    await server.leave();
  });
});

describe('a process that hangs in the middle of a start', () => {
  it('is reported by its pid after a while, and does not count any more once it is dead', async () => {
    const dataDir = await temporaryDir();
    const host = new Host(dataDir);
    await until('it starts', () => host.progress.length > 0);
    signal(host.child.pid ?? 0, 'SIGSTOP');
    await expect(joinEmbeddedPostgres({ dataDir, timeoutMs: 500 })).rejects.toThrow(
      new RegExp(`Process ${host.child.pid} has been starting or stopping the embedded Postgres`),
    );
    const joining = joinEmbeddedPostgres({ dataDir });
    await sleep(100);
    host.kill('SIGKILL');
    const server = await joining;
    expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await server.leave();
  });

  it('cannot get in the way with entries that are not ours', async () => {
    const dataDir = await temporaryDir();
    await (await joinEmbeddedPostgres({ dataDir })).leave();
    await writeFile(join(dataDir, 'locks', 'ticket-000000000001-1-dead-beef'), '');
    await writeFile(join(dataDir, 'locks', 'something else'), '');
    await mkdir(join(dataDir, 'members', 'a directory'));
    const server = await joinEmbeddedPostgres({ dataDir });
    const pid = serverPid(dataDir);
    await server.leave();
    expect(isAlive(pid)).toBe(false);
  });
});
