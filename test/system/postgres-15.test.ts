import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Postgres, startDebianPostgres } from '../support/debian-postgres.ts';
import { runSuite } from './suite.ts';

let postgres: Postgres;
beforeAll(async () => {
  // An unusual default that applications set.
  postgres = await startDebianPostgres({ default_transaction_isolation: 'repeatable read' });
});
afterAll(() => postgres.remove());

test('everything that works on the embedded Postgres works on Postgres 15 with repeatable read as its default', async () => {
  const { code, output } = await runSuite({ TEST_DATABASE_URL: postgres.url });
  expect(code, output).toBe(0);
}, 1_200_000);
