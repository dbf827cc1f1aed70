import { randomBytes, randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate as applyMigrations } from 'drizzle-orm/node-postgres/migrator';
import pg from 'pg';
import type { Queryable } from './pool.ts';

/** Any number, as long as all servers of one database use the same. */
const migrationLock = 7_241_905_113n;
const migrationsFolder = fileURLToPath(new URL('../../drizzle', import.meta.url));

export interface Installation {
  /** Names this database; changes when a backup is restored, which ends all cursors. */
  epoch: string;
  /** Key of the lease tokens. */
  secretKey: Buffer;
}

/**
 * Brings the database to the current version and reads who it is. Servers that start at the same time wait for each
 * other: the lock is held in a transaction, so it also works through a pooler in transaction mode.
 */
export async function migrate(connectionString: string): Promise<Installation> {
  const guard = new pg.Client({ connectionString });
  const worker = new pg.Client({ connectionString });
  let lost: Error | null = null;
  for (const client of [guard, worker]) {
    // Nobody waits for an answer of the guard meanwhile: unheard, the end of its connection would be that of the process.
    client.on('error', (error) => {
      lost ??= error;
    });
  }
  try {
    await guard.connect();
    await worker.connect();
    await guard.query('begin');
    await guard.query('select pg_advisory_xact_lock($1)', [migrationLock]);
    await applyMigrations(drizzle(worker), {
      migrationsFolder,
      migrationsSchema: 'runplane',
      migrationsTable: 'migrations',
    });
    const installation = await readInstallation(worker);
    await guard.query('commit');
    return installation;
  } catch (error) {
    throw lost ?? error;
  } finally {
    await guard.end();
    await worker.end();
  }
}

/** Whether the database is as this version needs it. Nothing is changed. */
export async function isMigrated(db: Queryable): Promise<boolean> {
  const newest = Math.max(
    ...readMigrationFiles({ migrationsFolder }).map(({ folderMillis }) => folderMillis),
  );
  const { rows: tables } = await db.query<{ exists: boolean }>({
    text: `select to_regclass('runplane.migrations') is not null as exists`,
  });
  if (!tables[0]?.exists) return false;
  const { rows } = await db.query<{ last: number | null }>({
    text: 'select max(created_at) as last from runplane.migrations',
  });
  return (rows[0]?.last ?? 0) >= newest;
}

async function readInstallation(client: pg.Client): Promise<Installation> {
  await client.query(
    'insert into runplane.installation (epoch, secret_key) values ($1, $2) on conflict (id) do nothing',
    [randomUUID(), randomBytes(32)],
  );
  const { rows } = await client.query<{ epoch: string; secret_key: Buffer }>(
    'select epoch, secret_key from runplane.installation',
  );
  const row = rows[0];
  if (!row) throw new Error('The table runplane.installation is empty; restore its row from a backup.');
  return { epoch: row.epoch, secretKey: row.secret_key };
}
