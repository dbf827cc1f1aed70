import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Database, type Queryable } from '../../src/db/pool.ts';
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

const kinds: [string, boolean][] = [
  ['in sessions of our own', true],
  ['behind a pooler', false],
];
const open = (ownSessions: boolean): Database =>
  new Database({
    connectionString: database.url,
    maxConnections: 1,
    timeouts: { statement: 7000, lock: 3000, idleInTransaction: 5000 },
    ownSessions,
    applicationName: 'runplane-test',
    onError: () => {},
  });

test.each(kinds)('every statement has its isolation level and timeouts, %s', async (_, ownSessions) => {
  const db = open(ownSessions);
  const question = {
    text: `select current_setting('transaction_isolation') as isolation, current_setting('statement_timeout') as statement,
                  current_setting('lock_timeout') as lock, current_setting('idle_in_transaction_session_timeout') as idle`,
  };
  const right = [{ isolation: 'read committed', statement: '7s', lock: '3s', idle: '5s' }];
  expect((await db.query(question)).rows).toEqual(right);
  expect((await transaction(db, (tx) => tx.query(question))).rows).toEqual(right);
  await db.close();
});

describe.each(kinds)('%s', (_, ownSessions) => {
  const insert = (key: string) => ({
    name: 'insert-asset',
    text: 'insert into runplane.assets (id, key) values (gen_random_uuid(), $1)',
    values: [key],
  });
  const kept = async (db: Database) =>
    (await db.query<{ key: string }>({ text: 'select key from runplane.assets order by key' })).rows;
  let db: Database;
  beforeEach(() => {
    db = open(ownSessions);
  });
  afterEach(() => db.close());

  test('statements whose answers nobody waits for are carried out in their order, with all others', async () => {
    const seen = await transaction(db, async (tx) => {
      await tx.send(insert('a'));
      await tx.query(insert('b'));
      await tx.send({ text: `update runplane.assets set key = key || '2'` });
      const { rows } = await tx.query({ text: 'select key from runplane.assets order by key' });
      await tx.send(insert('c'));
      return rows;
    });
    expect(seen).toEqual([{ key: 'a2' }, { key: 'b2' }]);
    expect(await kept(db)).toEqual([...seen, { key: 'c' }]);
  });

  test('one of them that fails undoes the transaction, which tells why, whatever came behind', async () => {
    const duplicate = { code: '23505' };
    const failing = async (more: (tx: Queryable) => Promise<unknown>) =>
      transaction(db, async (tx) => {
        await tx.query(insert('a'));
        await tx.send(insert('a'));
        await more(tx);
      });
    await expect(failing(async () => {})).rejects.toMatchObject(duplicate);
    await expect(failing((tx) => tx.send(insert('b')))).rejects.toMatchObject(duplicate);
    await expect(failing((tx) => tx.query(insert('b')))).rejects.toMatchObject(duplicate);
    expect(await kept(db)).toEqual([]);
    await transaction(db, (tx) => tx.send(insert('b')));
    expect(await kept(db)).toEqual([{ key: 'b' }]);
  });

  test('what was sent along with the beginning of a transaction fails with it, and nothing is changed outside of one', async () => {
    const texts: string[] = [];
    const failing = db.inTransaction('select 1 / 0', async (tx) => {
      await tx.query({ text: 'select 1', readsOnly: true }).finally(() => texts.push('read'));
      await tx.query(insert('a'));
    });
    await expect(failing).rejects.toMatchObject({ code: '22012' });
    await expect(db.inTransaction('select 1 / 0', (tx) => tx.query(insert('a')))).rejects.toMatchObject({
      code: '22012',
    });
    await expect(db.inTransaction('select 1 / 0', (tx) => tx.send(insert('a')))).rejects.toMatchObject({
      code: '22012',
    });
    expect(texts).toEqual(['read']);
    expect(await kept(db)).toEqual([]);
  });
});

test('times are what they are in the database, to the millisecond, from whatever zone a session is in', async () => {
  const times = [
    '2026-11-30 07:14:17+00',
    '2026-11-30 07:14:17.5+00',
    '2026-11-30 07:14:17.123999+00',
    '0099-01-02 03:04:05.006+00',
    '0044-03-15 12:00:00+00 BC',
    '12026-01-01 00:00:00.001+00',
    '1970-01-01 00:00:00+00',
    'infinity',
  ];
  for (const zone of ['UTC', 'Asia/Kathmandu', 'America/St_Johns']) {
    const { rows } = await transaction(database.db, async (tx) => {
      await tx.query({ text: `set local timezone = '${zone}'` });
      return tx.query<{ at: Date | number; ms: number | null }>({
        text: `select t as at, case when isfinite(t) then floor(extract(epoch from t) * 1000)::bigint end as ms
                 from unnest($1::timestamptz[]) with ordinality u(t, n) order by n`,
        values: [times],
      });
    });
    const read = rows.map(({ at }) => (at instanceof Date ? at.getTime() : at));
    expect(read, zone).toEqual(rows.map(({ ms }) => ms ?? Number.POSITIVE_INFINITY));
  }
});
