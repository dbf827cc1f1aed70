import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Queryable, Statement } from '../../src/db/pool.ts';
import { transactionByKey } from '../../src/db/transaction.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { parseReport } from '../../src/result/parse-result.ts';
import {
  type AttemptEnding,
  type Endings,
  type Heard,
  recordEndings,
} from '../../src/result/record-endings.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a', { retryPolicy: { maxAttempts: 2, initialDelaySeconds: 0 } });
  await plane.job('j', ['a']);
});
afterEach(() => plane.stop());

async function claimed(correlationId: string, config: object = {}): Promise<Assignment> {
  await plane.launch('j', { correlationId, config });
  const [assignment] = await plane.claim(['a'], 1);
  if (!assignment) throw new Error('nothing to claim');
  return assignment;
}

const reported = ({ attemptId }: Assignment, result: object): AttemptEnding => ({
  attemptId,
  report: parseReport({ status: 'COMPLETED', ...result }, attemptId),
});

/** Records endings; answers what is told of them, the names of all statements for it, and how often large values were read. */
async function record(
  endings: readonly AttemptEnding[],
  heard?: Heard,
): Promise<{ made: Endings; statements: (string | undefined)[]; payloadReads: number }> {
  const statements: (string | undefined)[] = [];
  return transactionByKey(plane.database.db, async (tx) => {
    const noted: Queryable = {
      query: (statement: Statement) => {
        statements.push(statement.name);
        return tx.query(statement);
      },
      send: (statement) => {
        statements.push(statement.name);
        return tx.send(statement);
      },
    };
    const before = await payloadReads(tx);
    const made = await recordEndings(noted, endings, heard);
    return { made, statements, payloadReads: (await payloadReads(tx)) - before };
  });
}

/** How often values that are too large for their rows were looked up over this connection. */
async function payloadReads(tx: Queryable): Promise<number> {
  const { rows } = await tx.query<{ reads: number }>({
    text: `select sum(idx_scan)::int as reads from pg_stat_xact_all_tables where relid in (
             select reltoastrelid from pg_class where oid in ('runplane.runs'::regclass, 'runplane.tasks'::regclass))`,
  });
  return rows[0]?.reads ?? 0;
}

const forLosses = ['name-losses', 'read-ended-attempts'];
const told = (statements: readonly (string | undefined)[]): (string | undefined)[] =>
  statements.filter((name) => name !== undefined && forLosses.includes(name));

test('of work that was lost the log knows all names, by one statement for all of it', async () => {
  const first = await claimed('c-1');
  const second = await claimed('c-2');
  await plane.expire(first);
  const failure = { status: 'FAILED', error: { code: 'BOOM', message: 'no', kind: 'PERMANENT' } };
  const { made, statements } = await record([
    { attemptId: first.attemptId, report: null },
    reported(second, failure),
  ]);
  const names = { agent: 'a', step: 'a', number: 1 };
  expect(made.losses).toEqual([
    {
      ...names,
      correlationId: 'c-1',
      attemptId: first.attemptId,
      taskId: first.taskId,
      runId: first.runId,
      status: 'LOST',
      errorCode: 'LEASE_LOST',
      deadLettered: false,
    },
    {
      ...names,
      correlationId: 'c-2',
      attemptId: second.attemptId,
      taskId: second.taskId,
      runId: second.runId,
      status: 'FAILED',
      errorCode: 'BOOM',
      deadLettered: true,
    },
  ]);
  expect(made.attempts).toEqual([]);
  expect(told(statements)).toEqual(['name-losses']);
});

test('nothing is looked up for the log when nothing was lost', async () => {
  const done = await claimed('c-1');
  const again = await claimed('c-2');
  const failure = { status: 'FAILED', error: { code: 'BOOM', message: 'no' } };
  const { made, statements } = await record([reported(done, {}), reported(again, failure)]);
  expect(made.losses).toEqual([]);
  expect(told(statements)).toEqual([]);
});

test.each(['LOSSES', 'EVERYTHING'] as const)(
  'payloads are not read for it while runs are locked: %s',
  async (heard) => {
    const text = Array.from({ length: 20_000 }, () => Math.random().toString(36)).join('');
    const attempt = await claimed('c-1', { text });
    await plane.expire(attempt);
    const { made, payloadReads } = await record([{ attemptId: attempt.attemptId, report: null }], heard);
    expect(made.losses).toMatchObject([{ correlationId: 'c-1', status: 'LOST' }]);
    expect(payloadReads).toBe(0);
    if (heard === 'EVERYTHING') expect(made.attempts[0]?.inputBytes).toBeGreaterThan(100_000);
  },
);
