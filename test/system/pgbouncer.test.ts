import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type Pooler,
  type Postgres,
  startDebianPostgres,
  startPgbouncer,
} from '../support/debian-postgres.ts';
import { runSuite } from './suite.ts';

let postgres: Postgres;
let pooler: Pooler;
beforeAll(async () => {
  postgres = await startDebianPostgres({
    max_connections: '200',
    default_transaction_isolation: 'repeatable read',
  });
  pooler = await startPgbouncer(postgres);
});
afterAll(async () => {
  await pooler.stop();
  postgres.remove();
});

test('everything works through pgbouncer in transaction mode, with a direct connection for LISTEN', async () => {
  const { code, output } = await runSuite({ TEST_DATABASE_URL: postgres.url, TEST_POOLER_URL: pooler.url });
  expect(code, output).toBe(0);
}, 1_200_000);
