import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { type Installation, migrate } from '../../src/db/migrate.ts';
import { Database } from '../../src/db/pool.ts';
import { seedRegistry } from '../../src/operator/seed-registry.ts';
import { connectionTo, databaseUrl } from './connection.ts';

export interface TestDatabase {
  url: string;
  db: Database;
  installation: Installation;
  drop(): Promise<void>;
}

export const openDatabase = (url: string, maxConnections = 5): Database =>
  new Database({ ...connectionTo(url), maxConnections, applicationName: 'runplane-test', onError: () => {} });

/** A migrated database of its own, copied from the template that the global set-up made. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const server = inject('postgresUrl');
  const name = `test_${randomBytes(6).toString('hex')}`;
  await onServer(server, `create database ${name} template runplane_template`);
  const url = databaseUrl(server, name);
  // The template's row would give all copies one epoch and one key.
  const db = openDatabase(url);
  await db.query({ text: 'delete from runplane.installation' });
  const installation = await migrate(url);
  return {
    url,
    db,
    installation,
    drop: async () => {
      await db.close();
      await onServer(server, `drop database ${name} with (force)`);
    },
  };
}

/** Makes the template once for all test files. */
export async function createTemplate(server: string): Promise<void> {
  await onServer(server, 'drop database if exists runplane_template with (force)');
  await onServer(server, 'create database runplane_template');
  const url = databaseUrl(server, 'runplane_template');
  await migrate(url);
  // Not through a pooler, which would keep the connection: a template must have none.
  const db = new Database({
    ...connectionTo(url, null),
    applicationName: 'runplane-test',
    onError: () => {},
  });
  await seedRegistry(db);
  await db.close();
}

async function onServer(server: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
