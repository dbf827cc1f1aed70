import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Database, Queryable, Statement } from './pool.ts';

/** Serialization failure, deadlock, lock not available: the same transaction may well succeed when repeated. */
const repeatable = new Set(['40001', '40P01', '55P03']);
const maxRepeats = 3;

const isRepeatable = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code !== undefined && repeatable.has(error.code);

/** Runs one statement as a transaction of its own, repeated like one. */
export function statement<Row extends pg.QueryResultRow>(
  db: Database,
  text: Statement,
): Promise<pg.QueryResult<Row>> {
  return repeated(() => db.query<Row>(text));
}

/** Every statement a transaction of its own. */
export const asTransactions = (db: Database): Queryable => ({
  query: (text) => statement(db, text),
  send: async (text) => {
    await statement(db, text);
  },
});

/**
 * Runs work in a READ COMMITTED transaction. Repeats the whole up to three times on deadlocks and lock timeouts, so work must have no effect outside of it.
 */
export function transaction<T>(db: Database, work: (tx: Queryable) => Promise<T>): Promise<T> {
  return repeated(() => db.inTransaction(db.begin, work));
}

/** The same for work that finds all its rows by key, and is planned so. */
export function transactionByKey<T>(db: Database, work: (tx: Queryable) => Promise<T>): Promise<T> {
  return repeated(() => db.inTransaction(db.beginByKey, work));
}

async function repeated<T>(work: () => Promise<T>): Promise<T> {
  for (let repeat = 0; ; repeat++) {
    try {
      return await work();
    } catch (error) {
      if (repeat === maxRepeats || !isRepeatable(error)) throw error;
      await delay(10 * 2 ** repeat * (0.5 + Math.random()));
    }
  }
}
