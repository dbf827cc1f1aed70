import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { transaction } from '../../src/db/transaction.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { createRead } from '../../src/read/read.ts';
import { materialize } from '../../src/result/materialize.sql.ts';
import { ControlPlane } from '../support/control-plane.ts';

/** Each is made by a job of its own, which reads the assets before it. */
const reads = { embedding: [], retrieve: ['embedding'], compose: ['embedding', 'retrieve'] } as const;
type AssetKey = keyof typeof reads;
const keys = Object.keys(reads) as AssetKey[];

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  for (const key of keys) {
    await plane.agent(key);
    await plane.job(key, [{ name: key, agent: key, assetKey: key, readsAssetKeys: [...reads[key]] }]);
  }
});
afterEach(() => plane.stop());

async function claimOf(key: AssetKey, correlationId = 'q-1'): Promise<Assignment> {
  await plane.launch(key, { correlationId });
  const [assignment] = await plane.claim([key], 1);
  if (!assignment) throw new Error('nothing to claim');
  return assignment;
}

const made = (key: AssetKey) => ({ status: 'COMPLETED', materializations: [{ assetKey: key }] }) as const;

async function make(key: AssetKey, correlationId?: string): Promise<string> {
  const assignment = await claimOf(key, correlationId);
  expect(await plane.report(assignment, made(key))).toMatchObject({ outcome: 'APPLIED' });
  return assignment.attemptId;
}

/** Which was made from which. */
const edges = () =>
  plane.rows<{ edge: string }>(`
    select o.key || ' < ' || a.key as edge from runplane.materialization_inputs x
      join runplane.materializations m on m.id = x.materialization_id join runplane.assets o on o.id = m.asset_id
      join runplane.materializations i on i.id = x.input_id join runplane.assets a on a.id = i.asset_id
     where m.correlation_id = i.correlation_id order by 1`);
const all = ['compose < embedding', 'compose < retrieve', 'retrieve < embedding'].map((edge) => ({ edge }));
const awaited = () => plane.rows('select correlation_id from runplane.awaited_inputs');

const orders: AssetKey[][] = [
  ['embedding', 'retrieve', 'compose'],
  ['embedding', 'compose', 'retrieve'],
  ['retrieve', 'embedding', 'compose'],
  ['retrieve', 'compose', 'embedding'],
  ['compose', 'embedding', 'retrieve'],
  ['compose', 'retrieve', 'embedding'],
];

describe('what is made is linked to what it was made from', () => {
  test.each(orders)('in whatever order it comes: %s, %s, %s', async (...order) => {
    for (const key of order) await make(key);
    expect(await edges()).toEqual(all);
    expect(await awaited()).toEqual([]);
  });

  test('in whatever order the transactions commit that make it', async () => {
    for (const order of orders) {
      const correlationId = order.join();
      const attempts = await Promise.all(order.map((key) => claimOf(key, correlationId)));
      const results = order.map((key, i) => [attempts[i] as Assignment, made(key)] as const);
      await inOpenTransactions(results);
    }
    expect(await edges()).toHaveLength(orders.length * all.length);
    expect(await awaited()).toEqual([]);
  });

  test('only under the same correlation id', async () => {
    await make('embedding', 'q-1');
    await make('compose', 'q-2');
    await make('retrieve', 'q-1');
    expect(await edges()).toEqual([{ edge: 'retrieve < embedding' }]);
    expect(await awaited()).toHaveLength(2);
  });

  test('to the latest there was, and a later one changes nothing', async () => {
    await make('embedding');
    const second = await make('embedding');
    await make('retrieve');
    await make('embedding');
    const inputs = await plane.rows<{ attempt: string }>(
      `select i.attempt_id as attempt from runplane.materialization_inputs x join runplane.materializations i on i.id = x.input_id`,
    );
    expect(inputs).toEqual([{ attempt: second }]);
  });

  test('to the first that came where there was none', async () => {
    await make('retrieve');
    const first = await make('embedding');
    await make('embedding');
    const inputs = await plane.rows<{ attempt: string }>(
      `select i.attempt_id as attempt from runplane.materialization_inputs x join runplane.materializations i on i.id = x.input_id`,
    );
    expect(inputs).toEqual([{ attempt: first }]);
  });
});

/** Two results at a time, of replicas of their own: each is in the middle of its transaction when the other begins. */
async function inOpenTransactions(
  results: readonly (readonly [Assignment, ReturnType<typeof made>])[],
): Promise<void> {
  const [first, ...others] = results;
  const replica = await ControlPlane.start({ database: { ...plane.database, drop: async () => {} } });
  const blocker = new pg.Client({ connectionString: plane.database.url });
  await blocker.connect();
  try {
    // Who has stored what was made, and has to link it yet, waits for this table.
    await blocker.query('begin; lock table runplane.materialization_inputs in access exclusive mode');
    const reports = [plane.report(...(first as (typeof results)[number]))];
    await plane.untilBlocked(1);
    for (const [i, result] of others.entries()) {
      reports.push((i % 2 === 0 ? replica : plane).report(...result));
    }
    await plane.untilBlocked(2);
    await blocker.query('commit');
    for (const outcome of await Promise.all(reports)) expect(outcome).toMatchObject({ outcome: 'APPLIED' });
  } finally {
    await blocker.end();
    await replica.services.stop();
  }
}

describe('there is one materialization', () => {
  test('of a result that is delivered many times, also at once', async () => {
    const assignment = await claimOf('embedding');
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => plane.report(assignment, made('embedding'))),
    );
    answers.push(await plane.report(assignment, made('embedding')));
    expect(answers.map((answer) => ('outcome' in answer ? answer.outcome : answer.kind)).sort()).toEqual([
      'APPLIED',
      ...Array.from({ length: 5 }, () => 'REPLAYED'),
    ]);
    expect(await plane.rows('select id from runplane.materializations')).toHaveLength(1);
  });

  test.each(['FAILED', 'CANCELLED', 'RELEASED'] as const)(
    'but none of an attempt that is %s',
    async (status) => {
      const { materializations } = made('embedding');
      expect(await plane.report(await claimOf('embedding'), { status, materializations })).toMatchObject({
        outcome: 'APPLIED',
      });
      expect(await plane.rows('select id from runplane.materializations')).toEqual([]);
    },
  );

  test('of a lost attempt that did the work after all, and none of the newer one', async () => {
    const lost = await claimOf('embedding');
    await plane.expire(lost);
    await plane.sweep(lost);
    const [newer] = await plane.claim(['embedding'], 1);
    if (!newer) throw new Error('nothing to claim');
    expect(await plane.report(lost, made('embedding'))).toMatchObject({ outcome: 'APPLIED' });
    expect(await plane.report(newer, made('embedding'))).toMatchObject({ outcome: 'SUPERSEDED' });
    expect(await plane.rows('select attempt_id from runplane.materializations')).toEqual([
      { attempt_id: lost.attemptId },
    ]);
  });

  test('and none of a lost attempt when a newer one completed', async () => {
    const lost = await claimOf('embedding');
    await plane.expire(lost);
    await plane.sweep(lost);
    const [newer] = await plane.claim(['embedding'], 1);
    if (!newer) throw new Error('nothing to claim');
    await plane.report(newer, made('embedding'));
    expect(await plane.report(lost, made('embedding'))).toMatchObject({ outcome: 'SUPERSEDED' });
    expect(await plane.rows('select attempt_id from runplane.materializations')).toEqual([
      { attempt_id: newer.attemptId },
    ]);
  });
});

describe('lineage of assets', () => {
  const lineage = async (key: string, direction: 'UPSTREAM' | 'DOWNSTREAM' | 'BOTH', depth = 10) => {
    const { assets } = createRead(plane.database.db);
    const asset = await assets.byKey(key);
    const found = await assets.lineage(asset?.id ?? '', direction, depth);
    const names = await assets.byIds(found.flatMap(({ upstream, downstream }) => [upstream, downstream]));
    return found
      .map((edge) => `${edge.depth} ${names.get(edge.downstream)?.key} < ${names.get(edge.upstream)?.key}`)
      .sort();
  };

  test('is followed up, down and both ways, as far as was asked', async () => {
    await plane.agent('answer');
    await plane.job('answer', [
      { name: 'answer', agent: 'answer', assetKey: 'answer', readsAssetKeys: ['compose'] },
    ]);
    expect(await lineage('compose', 'UPSTREAM')).toEqual([
      '1 compose < embedding',
      '1 compose < retrieve',
      '2 retrieve < embedding',
    ]);
    expect(await lineage('compose', 'DOWNSTREAM')).toEqual(['1 answer < compose']);
    expect(await lineage('compose', 'BOTH')).toHaveLength(4);
    expect(await lineage('answer', 'UPSTREAM', 1)).toEqual(['1 answer < compose']);
  });

  test('ends where a cycle closes, however deep it is asked for', async () => {
    await plane.job('embedding', [
      {
        name: 'embedding',
        agent: 'embedding',
        assetKey: 'embedding',
        readsAssetKeys: ['compose', 'embedding'],
      },
    ]);
    const edges = [
      '1 compose < embedding',
      '1 compose < retrieve',
      '2 embedding < compose',
      '2 embedding < embedding',
      '2 retrieve < embedding',
    ];
    expect(await lineage('compose', 'UPSTREAM', 100)).toEqual(edges);
    expect(await lineage('compose', 'BOTH', 100)).toHaveLength(edges.length);
  });
});

test('a group of results takes as many locks for what it made as Postgres reckons with, however many correlation ids it has', async () => {
  const ids = Array.from({ length: 200 }, (_, i) => `q-${i}`);
  for (const correlationId of ids) await plane.launch('embedding', { correlationId });
  const claimed = [...(await plane.claim(['embedding'])), ...(await plane.claim(['embedding']))];
  const produced = claimed.map(({ taskId, attemptId }) => ({
    taskId,
    attemptId,
    materializations: [{ assetKey: 'embedding', partition: null, metadata: null }],
  }));
  const text = `select count(*)::int as locks from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`;
  let locks = 0;
  const rolledBack = transaction(plane.database.db, async (tx) => {
    await materialize(tx, produced);
    locks = (await tx.query<{ locks: number }>({ text })).rows[0]?.locks ?? 0;
    throw new Error('rolled back');
  });
  await expect(rolledBack).rejects.toThrow('rolled back');
  expect(produced).toHaveLength(ids.length);
  expect(locks).toBeGreaterThan(0);
  expect(locks).toBeLessThanOrEqual(64);
});
