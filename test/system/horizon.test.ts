import { afterAll, beforeAll, expect, test } from 'vitest';
import { readBlocker } from '../../src/changelog/horizon-blocker.sql.ts';
import { followHorizon } from '../../src/changelog/horizon-watch.ts';
import { readSnapshot } from '../../src/changelog/snapshot.ts';
import type { Database } from '../../src/db/pool.ts';
import { openDatabase } from '../support/database.ts';
import { type Postgres, startDebianPostgres } from '../support/debian-postgres.ts';

let postgres: Postgres;
let db: Database;
beforeAll(async () => {
  postgres = await startDebianPostgres({ max_prepared_transactions: '2', wal_level: 'logical' });
  db = openDatabase(postgres.url, 1);
});
afterAll(async () => {
  await db.close();
  postgres.remove();
});

/** Others of the cluster, as autovacuum, write now and then. */
const expectToMoveOn = () =>
  expect.poll(async () => followHorizon(null, await readSnapshot(db), 0), { timeout: 10_000 }).toBeNull();
const write = () => db.query({ text: 'select pg_current_xact_id()' });

test('a prepared transaction that nobody ends is named as what holds back the horizon', async () => {
  await db.query({ text: `begin; select pg_current_xact_id(); prepare transaction 'forgotten'` });
  await write();
  const standing = followHorizon(null, await readSnapshot(db), 0);
  if (!standing) throw new Error('nothing stands still');
  expect(await readBlocker(db, standing.horizon)).toEqual({
    kind: 'PREPARED_TRANSACTION',
    pid: null,
    database: 'postgres',
    user: 'postgres',
    applicationName: null,
    globalId: 'forgotten',
    state: null,
    openSince: expect.any(Date),
  });
  await db.query({ text: `rollback prepared 'forgotten'` });
  await expectToMoveOn();
});

test('a replication slot that keeps rows from vacuum holds back no cursor', async () => {
  const slot = `pg_create_logical_replication_slot('unused', 'pgoutput')`;
  await db.query({ text: `select from ${slot}` });
  const [kept] = (await db.query({ text: 'select catalog_xmin from pg_replication_slots' })).rows;
  expect(kept?.catalog_xmin).not.toBeNull();
  for (let i = 0; i < 3; i++) await write();
  await expectToMoveOn();
});
