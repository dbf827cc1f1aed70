import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { joinEmbeddedPostgres } from '../../src/db/embedded-postgres.ts';

/** Enough memory that the data of a benchmark is cached, and enough log that no checkpoint falls into it. */
const settings = { shared_buffers: '512MB', max_wal_size: '4GB' };

export interface Server {
  url: string;
  close(): Promise<void>;
}

/** The Postgres of BENCH_DATABASE_URL, or an embedded one that is thrown away. */
export async function startServer(): Promise<Server> {
  const given = process.env.BENCH_DATABASE_URL;
  if (given) return { url: given, close: async () => {} };
  const dataDir = await mkdtemp(join(tmpdir(), 'runplane-bench-'));
  const postgres = await joinEmbeddedPostgres({ dataDir, settings });
  return {
    url: postgres.url,
    close: async () => {
      await postgres.leave();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** A new database for one measurement. */
export async function createDatabase(server: string, name: string): Promise<string> {
  await onDatabase(server, [`drop database if exists ${name} with (force)`, `create database ${name}`]);
  return databaseUrl(server, name);
}

export function databaseUrl(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** What Postgres would do by itself some time after much was written, so that it does not do so while we measure. */
export const settle = (url: string): Promise<void> => onDatabase(url, ['vacuum analyze', 'checkpoint']);

export const dropDatabase = (server: string, name: string): Promise<void> =>
  onDatabase(server, [`drop database if exists ${name} with (force)`]);

export async function onDatabase(url: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
