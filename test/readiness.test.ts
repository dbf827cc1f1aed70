import { expect, test } from 'vitest';
import { Database } from '../src/db/pool.ts';
import { readinessOf } from '../src/readiness.ts';

test('anybody may know that the database does not answer, and only the log says where it is and who asked', async () => {
  const db = new Database({
    connectionString: 'postgres://somebody:secret@127.0.0.1:1/somewhere',
    maxConnections: 1,
    timeouts: { statement: 1000, lock: 1000, idleInTransaction: 1000 },
    ownSessions: true,
    applicationName: 'test',
    onError: () => {},
  });
  const logged: object[] = [];
  const log = { warn: (fields: object) => void logged.push(fields) };
  const readiness = await readinessOf({ db, signal: { listening: false }, ingest: null }, log);
  expect(readiness).toEqual({
    ready: false,
    reasons: [
      'database: it does not answer, the log says why',
      'listener: not connected, changes of other replicas are seen within a second',
    ],
  });
  expect(JSON.stringify(logged)).toContain('127.0.0.1:1');
  await db.close();
});

test('a process without its broker, or deaf for signals, is ready for requests and says what is not as it should be', async () => {
  const db = { query: () => Promise.resolve() };
  const ingest = { notReady: () => ['nats: not connected'] };
  const log = { warn: () => {} };
  expect(await readinessOf({ db, signal: { listening: true }, ingest }, log)).toEqual({
    ready: true,
    reasons: ['nats: not connected'],
  });
  expect(await readinessOf({ db, signal: { listening: false }, ingest }, log)).toEqual({
    ready: true,
    reasons: [expect.stringContaining('listener'), 'nats: not connected'],
  });
});
