import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import { explainStartError } from '../../src/start-error.ts';
import { databaseUrl } from '../support/connection.ts';

const server = inject('postgresUrl');
let url: string;
let admin: pg.Client;
/** In the empty database that is to be migrated. */
let other: pg.Client;

beforeEach(async () => {
  const name = `test_${randomBytes(6).toString('hex')}`;
  admin = new pg.Client({ connectionString: server });
  await admin.connect();
  await admin.query(`create database ${name}`);
  url = databaseUrl(server, name);
  other = new pg.Client({ connectionString: url });
  await other.connect();
});
afterEach(async () => {
  await other.end();
  await admin.query(`drop database ${new URL(url).pathname.slice(1)} with (force)`);
  await admin.end();
});

const sessions = async (condition: string): Promise<number[]> => {
  const text = `select pid from pg_stat_activity where datname = $1 and backend_type = 'client backend' and ${condition}`;
  const { rows } = await admin.query<{ pid: number }>(text, [new URL(url).pathname.slice(1)]);
  return rows.map(({ pid }) => pid);
};
const guard = `query like '%pg_advisory_xact_lock%'`;

test('a start whose guard is ended during the migrations fails by what ended it, and the next one succeeds', async () => {
  await other.query('begin');
  await other.query('create schema runplane');
  const starting = migrate(url).catch(explainStartError);
  await expect.poll(() => sessions(`wait_event_type = 'Lock'`)).toHaveLength(1);
  const [pid] = await sessions(guard);
  await admin.query('select pg_terminate_backend($1)', [pid]);
  await expect.poll(() => sessions(guard)).toEqual([]);
  await other.query('rollback');
  expect(await starting).toContain('terminating connection due to administrator command');
  await expect.poll(() => sessions('true')).toHaveLength(1);
  expect(await migrate(url)).toMatchObject({ epoch: expect.any(String) });
});

test.each([
  ['nobody listens', { port: '1' }, 'DATABASE_UNREACHABLE'],
  ['no database of the name is', { pathname: '/nowhere' }, 'DATABASE_UNREACHABLE'],
])('where %s a start fails plainly', async (_, part, code) => {
  const unreachable = Object.assign(new URL(url), part).toString();
  expect(await migrate(unreachable).catch(explainStartError)).toContain(code);
});
