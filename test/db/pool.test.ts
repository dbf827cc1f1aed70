import { afterEach, beforeEach, expect, test } from 'vitest';
import { Database } from '../../src/db/pool.ts';
import { transaction } from '../../src/db/transaction.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
  const name = new URL(database.url).pathname.slice(1);
  await database.db.query({
    text: `alter database ${name} set default_transaction_isolation = 'repeatable read'`,
  });
});
afterEach(() => database.drop());

test.each([
  ['in sessions of our own', true],
  ['behind a pooler', false],
])('every statement has its isolation level and timeouts, %s', async (_, ownSessions) => {
  const db = new Database({
    connectionString: database.url,
    maxConnections: 1,
    timeouts: { statement: 7000, lock: 3000, idleInTransaction: 5000 },
    ownSessions,
    applicationName: 'runplane-test',
    onError: () => {},
  });
  const question = {
    text: `select current_setting('transaction_isolation') as isolation, current_setting('statement_timeout') as statement,
                  current_setting('lock_timeout') as lock, current_setting('idle_in_transaction_session_timeout') as idle`,
  };
  const right = [{ isolation: 'read committed', statement: '7s', lock: '3s', idle: '5s' }];
  expect((await db.query(question)).rows).toEqual(right);
  expect((await transaction(db, (tx) => tx.query(question))).rows).toEqual(right);
  await db.close();
});
