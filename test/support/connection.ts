import type { DatabaseOptions } from '../../src/db/pool.ts';

const timeouts = { statement: 30_000, lock: 5_000, idleInTransaction: 30_000 };

/** How the product reaches a database: directly, or through the pooler that TEST_POOLER_URL names. */
export function connectionTo(
  url: string,
  pooler: string | null | undefined = process.env.TEST_POOLER_URL,
): Omit<DatabaseOptions, 'onError' | 'applicationName'> {
  return {
    connectionString: pooler ? databaseUrl(pooler, new URL(url).pathname.slice(1)) : url,
    maxConnections: 5,
    timeouts,
    ownSessions: !pooler,
  };
}

/** The same server, another database. */
export function databaseUrl(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.toString();
}
