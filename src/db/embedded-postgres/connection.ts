import pg from 'pg';
import { databaseName, roleName } from './cluster.ts';
import { EmbeddedPostgresError, errorCode } from './error.ts';

/** The address of a database of the embedded server. */
export function connectionUrl(port: number, password: string): string {
  return `postgres://${roleName}:${password}@127.0.0.1:${port}/${databaseName}`;
}

/**
 * Checks by logging in that the server works, and makes sure that the database
 * exists. The password proves both sides to each other (SCRAM), so an unrelated
 * server that has taken the port is never mistaken for ours.
 */
export async function askServer(
  port: number,
  password: string,
  timeoutMs: number,
): Promise<'ready' | 'not yet' | 'no answer'> {
  try {
    await runStatement(port, password, databaseName, 'SELECT 1', timeoutMs);
    return 'ready';
  } catch (error) {
    switch (errorCode(error)) {
      case '3D000': // The database is missing: this is the first start, or that was cut short.
        await runStatement(port, password, 'postgres', `CREATE DATABASE ${databaseName}`, 60_000);
        return 'ready';
      case '53300': // All connections are taken, so it works.
        return 'ready';
      case '57P03': // It is starting up or shutting down.
        return 'not yet';
      case '28P01':
        throw new EmbeddedPostgresError(
          'The embedded Postgres does not accept the password in the file "password" of the data directory. ' +
            'Restore that file, or choose another data directory.',
        );
      default:
        return 'no answer';
    }
  }
}

async function runStatement(
  port: number,
  password: string,
  database: string,
  statement: string,
  timeoutMs: number,
): Promise<void> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port,
    user: roleName,
    password,
    database,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  // A connection that breaks also fails the call in progress; without a listener it would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query(statement);
  } finally {
    await client.end();
  }
}
