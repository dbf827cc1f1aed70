import { resolve } from 'node:path';
import { readConfig } from '../config.ts';
import { type EmbeddedPostgres, joinEmbeddedPostgres } from '../db/embedded-postgres.ts';
import { isMigrated, migrate } from '../db/migrate.ts';
import { Database } from '../db/pool.ts';
import { seedRegistry } from '../operator/seed-registry.ts';
import { CommandError } from './command.ts';

/**
 * Works on the database of the settings: that of DATABASE_URL, or the embedded Postgres, which is shared with the server
 * that runs on it, or else runs as long as the command does. Who will change something brings the database to this
 * version first, as a server does at its start; who will not, leaves it alone.
 */
export async function withDatabase<T>(
  { changes }: { changes: boolean },
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const { database, dataDir } = readConfig();
  let embedded: EmbeddedPostgres | null = null;
  if (database.url === null) {
    const onProgress = (message: string): void => void process.stderr.write(`${message}\n`);
    embedded = await joinEmbeddedPostgres({ dataDir, onProgress });
  }
  const connectionString = database.url ?? embedded?.url ?? '';
  try {
    if (changes) await migrate(database.listenUrl ?? connectionString);
    const db = new Database({
      connectionString,
      maxConnections: 1,
      timeouts: database.timeouts,
      ownSessions: database.listenUrl === null,
      applicationName: 'runplane-command',
      // Whoever uses the connection learns of its end by what fails.
      onError: () => {},
    });
    try {
      if (changes) await seedRegistry(db);
      else if (!(await isMigrated(db))) throw new CommandError(notMigrated(embedded && dataDir));
      return await work(db);
    } finally {
      await db.close();
    }
  } finally {
    await embedded?.leave();
  }
}

const notMigrated = (dataDir: string | null): string =>
  `The database ${dataDir === null ? 'of DATABASE_URL' : `in ${resolve(dataDir)}`} has not the tables of this version. ` +
  'Start the server of this version on it, or apply a manifest to it.';
