import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { GroupCommit } from '../../src/db/group-commit.ts';
import { Database, type Queryable, type SentStatement } from '../../src/db/pool.ts';
import { transaction } from '../../src/db/transaction.ts';
import { isUnavailable } from '../../src/domain/unavailable.ts';
import { connectionTo } from '../support/connection.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

const insert = (key: string): SentStatement => ({
  name: 'insert-asset',
  text: 'insert into runplane.assets (id, key) values (gen_random_uuid(), $1)',
  values: [key],
});
const backend = async (db: Queryable): Promise<number> =>
  (await db.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' })).rows[0]?.pid ?? 0;

describe.each([
  ['in sessions of our own', true],
  ['behind a pooler', false],
])('%s', (_, ownSessions) => {
  let database: TestDatabase;
  let db: Database;
  const kept = async (): Promise<string[]> => {
    const text = 'select key from runplane.assets order by key';
    return (await database.db.query<{ key: string }>({ text })).rows.map(({ key }) => key);
  };
  const terminate = async (pid: number): Promise<void> => {
    await database.db.query({ text: 'select pg_terminate_backend($1, 5000)', values: [pid] });
  };
  beforeEach(async () => {
    database = await createTestDatabase();
    // One connection: what is left of a transaction would be in the next one's way.
    db = new Database({
      ...connectionTo(database.url, null),
      maxConnections: 1,
      ownSessions,
      applicationName: 'runplane-test',
      onError: () => {},
    });
  });
  afterEach(async () => {
    await transaction(db, (tx) => tx.send(insert('next')));
    expect(await kept()).toContain('next');
    await db.close();
    await database.drop();
  });

  test('nothing is left of a transaction that gives up while statements are on their way or still wait', async () => {
    const answers: Promise<unknown>[] = [];
    const givingUp = transaction(db, async (tx) => {
      await tx.query({ text: 'select 1' });
      answers.push(tx.query(insert('a')), tx.query(insert('b')), tx.send(insert('c')));
      throw new Error('given up');
    });
    await expect(givingUp).rejects.toThrow('given up');
    await Promise.allSettled(answers);
    const atOnce = transaction(db, async (tx) => {
      answers.push(tx.query(insert('d')), tx.send(insert('e')));
      throw new Error('given up at once');
    });
    await expect(atOnce).rejects.toThrow('given up at once');
    await Promise.allSettled(answers);
    expect(await kept()).toEqual([]);
  });

  test('a transaction that is over takes no more statements', async () => {
    let left: Queryable = db;
    await transaction(db, async (tx) => {
      left = tx;
      await tx.send(insert('a'));
    });
    const late = { message: 'The transaction is over.' };
    await expect(left.query(insert('b'))).rejects.toMatchObject(late);
    await expect(left.query({ text: 'select 1', readsOnly: true })).rejects.toMatchObject(late);
    await expect(left.send(insert('c'))).rejects.toMatchObject(late);
    expect(await kept()).toEqual(['a']);
  });

  test('who takes no notice of a statement that failed is not told that all is kept', async () => {
    const careless = transaction(db, async (tx) => {
      await tx.query(insert('a'));
      await tx.query(insert('a')).catch(() => null);
    });
    await expect(careless).rejects.toMatchObject({ code: '23505' });
    expect(await kept()).toEqual([]);
  });

  test('a name is that of one statement, and another one is refused before the transaction goes on', async () => {
    const other: SentStatement = { ...insert('b'), text: `${insert('b').text} returning id` };
    const mixed = transaction(db, async (tx) => {
      await tx.query(insert('a'));
      await tx.send(other);
    });
    await expect(mixed).rejects.toThrow('There is another statement named insert-asset.');
    await expect(db.query(other)).rejects.toThrow('another statement');
    expect(await kept()).toEqual([]);
  });

  test('what only reads does not overtake what was asked for before it', async () => {
    const seen = await transaction(db, async (tx) => {
      const text = 'select count(*)::int as count from runplane.assets';
      const [, { rows }] = await Promise.all([
        tx.query(insert('a')),
        tx.query<{ count: number }>({ text, readsOnly: true }),
      ]);
      return rows;
    });
    expect(seen).toEqual([{ count: 1 }]);
  });

  test('a statement that could not be prepared behind another that failed can be the next time', async () => {
    const failing = transaction(db, async (tx) => {
      await tx.send({ text: 'select 1 / 0' });
      await tx.send(insert('a'));
      await tx.send(insert('b'));
    });
    await expect(failing).rejects.toMatchObject({ code: '22012' });
    await transaction(db, async (tx) => {
      await tx.send(insert('c'));
      await tx.send(insert('d'));
    });
    expect(await kept()).toEqual(['c', 'd']);
  });

  test.each([
    ['40001', '40P01', '55P03', '23503'],
    ['55P03', '23503'],
    // Three times, and no more.
    ['40001', '40001', '40001', '40001'],
    ['40P01', '40P01', '40P01', '40P01'],
    ['55P03', '55P03', '55P03', '55P03'],
  ])(
    'what fails at the very end undoes everything, and is repeated where that helps: %s, %s …',
    async (...codes) => {
      await database.db.query({
        text: `create table late (code text);
             create function fail() returns trigger language plpgsql as $$ begin raise exception 'late' using errcode = new.code; end $$;
             create constraint trigger late after insert on late deferrable initially deferred for each row execute function fail()`,
      });
      const begun: string[] = [];
      const failing = transaction(db, async (tx) => {
        const code = codes[begun.length] ?? 'P0001';
        begun.push(code);
        await tx.send(insert(code));
        await tx.send({ text: 'insert into late values ($1)', values: [code] });
      });
      await expect(failing).rejects.toMatchObject({ code: codes.at(-1) });
      expect(begun).toEqual(codes);
      expect(await kept()).toEqual([]);
    },
  );

  test('what succeeds the third time it is repeated is kept, once', async () => {
    let times = 0;
    const outcome = await transaction(db, async (tx) => {
      times++;
      await tx.send(insert('a'));
      if (times <= 3)
        await tx.query({ text: `do $$ begin raise exception 'again' using errcode = '40001'; end $$` });
      return 'kept';
    });
    expect({ outcome, times, kept: await kept() }).toEqual({ outcome: 'kept', times: 4, kept: ['a'] });
  });

  test('when the answer to its end is lost, a transaction is not repeated: it may be kept, as it is', async () => {
    const proxy = await startTcpProxy(database.url, { losesAnswer: 'COMMIT' });
    const { host } = new URL(proxy.url);
    const lossy = new Database({
      ...connectionTo(Object.assign(new URL(database.url), { host }).toString(), null),
      ownSessions,
      applicationName: 'runplane-test',
      onError: () => {},
    });
    let times = 0;
    const group = new GroupCommit({
      apply: (keys: readonly string[]) =>
        transaction(lossy, async (tx) => {
          times++;
          for (const key of keys) await tx.send(insert(key));
          return keys.map(() => 'kept');
        }),
      keysOf: () => [],
      sizeOf: () => 1,
      maxItems: 10,
    });
    const outcomes = await Promise.allSettled(['a', 'b', 'c'].map((key) => group.submit(key)));
    expect(outcomes.map((one) => one.status === 'rejected' && isUnavailable(one.reason))).toEqual([
      true,
      true,
      true,
    ]);
    expect(times).toBe(1);
    expect(await kept()).toEqual(['a', 'b', 'c']);
    await lossy.close();
    await proxy.stop();
  });

  test('a connection that ends between any two statements takes all of them with it, once', async () => {
    const statements = ['a', 'b', 'c', 'd'];
    for (let at = 0; at <= statements.length; at++) {
      let times = 0;
      const cut = transaction(db, async (tx) => {
        times++;
        const pid = await backend(tx);
        for (const [i, key] of statements.entries()) {
          if (i === at) await terminate(pid);
          await (i % 2 === 0 ? tx.send(insert(key)) : tx.query(insert(key)));
        }
        if (at === statements.length) await terminate(pid);
      });
      await expect(cut, `before statement ${at}`).rejects.toThrow(/terminat|not queryable|ECONN|EPIPE/);
      expect(times).toBe(1);
      expect(await kept()).toEqual([]);
      const byItself = transaction(db, async (tx) => {
        await tx.send(insert('a'));
        await tx.send({ text: 'select pg_terminate_backend(pg_backend_pid())' });
        await tx.send(insert('b'));
      });
      await expect(byItself).rejects.toThrow();
      expect(await kept()).toEqual([]);
    }
  });
});
