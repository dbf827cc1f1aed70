import pg from 'pg';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Queryable } from '../../src/db/pool.ts';
import { findClaimableAgents } from '../../src/dispatch/claimable-agents.sql.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { expectInvariants } from '../support/invariants.ts';
import { count } from '../support/tier.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a', { maxConcurrentTasks: 1000 });
  await plane.job('a', ['a']);
  return () => plane.stop();
});

const launch = (n: number, input: object = {}): Promise<unknown> =>
  plane.services.intake.launchRuns(Array.from({ length: n }, () => ({ job: 'a', ...input })));

/** What is written at most some times a second may be written again. */
async function pass(): Promise<void> {
  await plane.rows(`update runplane.scan_starts set changed_at = changed_at - interval '1 s'`);
  await plane.rows(`update runplane.lane_turns set at = at - interval '2 s'`);
}

interface ScanStart {
  turn: number | null;
  leaseFrom: number;
}
async function scanStart(): Promise<ScanStart> {
  const [row] = await plane.rows<ScanStart>(
    `select s.turn, s.lease_from as "leaseFrom" from runplane.scan_starts s join runplane.agents a on a.id = s.agent_id and a.name = 'a'`,
  );
  if (!row) throw new Error('no claim wrote where scans start');
  return row;
}

/** So many claims of one task each, a while apart. */
async function claimSlowly(claims: number): Promise<Assignment[]> {
  const claimed: Assignment[] = [];
  for (let n = 0; n < claims; n++) {
    claimed.push(...(await plane.claim(['a'], 1)));
    await pass();
  }
  return claimed;
}

async function openTransaction(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: plane.database.url });
  await client.connect();
  await client.query('begin isolation level read committed');
  return client;
}

describe('claims begin to look', () => {
  it('behind what is claimed and what is over', async () => {
    await launch(1000);
    const claimed: Assignment[] = [];
    // Transactions of other databases count as under way, too.
    const turn = async (): Promise<number | null> => {
      claimed.push(...(await claimSlowly(1)));
      return (await scanStart()).turn;
    };
    await expect.poll(turn, { timeout: 20_000 }).toBeGreaterThan(4);
    const { leaseFrom } = await scanStart();
    for (const one of claimed) await plane.report(one, { status: 'COMPLETED' });
    await claimSlowly(1);
    expect((await scanStart()).leaseFrom).toBeGreaterThanOrEqual(leaseFrom + claimed.length);
  });

  it('behind what is over though an attempt goes on that began before, in the order of its claim', async () => {
    await launch(1000);
    const long = await plane.claim(['a'], 3);
    await pass();
    await plane.rows(`select setval('runplane.claim_order', 6000)`);
    const [recent] = await claimSlowly(1);
    const numbers = (): Promise<{ attemptId: string; claimSeq: number }[]> =>
      plane.rows(
        'select attempt_id as "attemptId", claim_seq::int as "claimSeq" from runplane.leases order by claim_seq',
      );
    expect((await numbers()).map(({ attemptId }) => attemptId)).toEqual(
      [...long, recent].map((one) => one?.attemptId),
    );
    await claimSlowly(1);
    expect((await scanStart()).leaseFrom).toBeGreaterThan(5000);
    await plane.agent('a', { maxConcurrentTasks: 5 });
    expect(await plane.claim(['a'], 10)).toHaveLength(0);
    expect(await plane.report(long[0] as Assignment, { status: 'COMPLETED' })).toMatchObject({
      outcome: 'APPLIED',
    });
    expect(await plane.claim(['a'], 10)).toHaveLength(1);
  });

  it('and so do hints, while a snapshot keeps what is over from being removed', async () => {
    await launch(1000);
    const snapshot = await openTransaction();
    await snapshot.query('set transaction isolation level repeatable read');
    await snapshot.query('select from runplane.agents');
    for (let n = 0; n < 9; n++) {
      const claimed = await plane.claim(['a'], 100);
      await Promise.all(claimed.map((one) => plane.report(one, { status: 'COMPLETED' })));
      await pass();
    }
    await expect
      .poll(async () => (await claimSlowly(1)) && (await scanStart()).turn, { timeout: 20_000 })
      .toBeGreaterThan(900);
    const ids = await plane.rows<{ id: string }>(`select id from runplane.agents where name = 'a'`);
    const client = new pg.Client({ connectionString: plane.database.url });
    await client.connect();
    let blocks = 0;
    const explained = async ({ text, values }: { text: string; values?: unknown[] }) => {
      const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, values);
      const { Plan } = rows[0]['QUERY PLAN'][0];
      blocks = Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'];
      return { rows: [] };
    };
    // The first time, catalogs are read, too.
    for (let n = 0; n < 2; n++)
      await findClaimableAgents(
        { query: explained } as unknown as Queryable,
        ids.map(({ id }) => id),
      );
    await client.end();
    await snapshot.query('commit');
    await snapshot.end();
    expect(blocks).toBeGreaterThan(0);
    expect(blocks).toBeLessThan(50);
  });

  it('never behind a task that a transaction made ready which takes longer than many claims', async () => {
    await launch(40, { customer: 'many' });
    await claimSlowly(2);
    const late = await plane.launch('a', { customer: 'late', availableAt: new Date(Date.now() + 3_600_000) });
    await plane.rows(
      `update runplane.tasks set available_at = available_at - interval '2 h' where run_id = $1`,
      [late],
    );
    await plane.rows(`update runplane.delayed_tasks set available_at = available_at - interval '2 h'`);
    const slow = await openTransaction();
    await slow.query('select runplane.move_due_tasks(1)');
    await claimSlowly(8);
    await slow.query('commit');
    await slow.end();
    expect((await plane.claim(['a'], 1)).map(({ runId }) => runId)).toEqual([late]);
  });

  it('nor behind the first task of a serial key, which keeps its turn when it comes back', async () => {
    const serial = await plane.launch('a', { serialKey: 'k' });
    await launch(40);
    const [first] = await claimSlowly(1);
    expect(first?.runId).toBe(serial);
    await claimSlowly(8);
    await plane.report(first as Assignment, { status: 'RELEASED' });
    expect((await plane.claim(['a'], 1)).map(({ runId }) => runId)).toEqual([serial]);
  });

  it('nor behind the tasks of a queue that is at an earlier turn than the one that the agent left', async () => {
    await launch(10);
    await claimSlowly(6);
    await plane.services.configuration.saveQueue({ name: 'other', pool: 'core' }, actor);
    await plane.claim(['a'], 100);
    await plane.agent('a', { maxConcurrentTasks: 1000, queue: 'other' });
    const runId = await plane.launch('a', { customer: 'new' });
    expect((await plane.claim(['a'], 1)).map((one) => one.runId)).toEqual([runId]);
  });

  it('in time for everything, while launches of any length, retries and claims of several workers cross', async () => {
    const rounds = count({ test: 25, soak: 1500 });
    let launched = 0;
    let launching = true;
    const anyOf = (n: number): number => Math.floor(Math.random() * n);
    const launcher = async (): Promise<void> => {
      for (let n = 0; n < rounds; n++) {
        const input = {
          customer: `c${anyOf(4)}`,
          priority: anyOf(2),
          ...(anyOf(8) === 0 && { serialKey: `k${anyOf(3)}` }),
        };
        await launch(3, input);
        launched += 3;
        if (anyOf(4) > 0) continue;
        await plane.launch('a', { ...input, availableAt: new Date(Date.now() + 1) });
        launched += 1;
        const slow = await openTransaction();
        await slow.query('select runplane.move_due_tasks(10)');
        for (let more = anyOf(4); more > 0; more--) await launch(1, input).then(() => (launched += 1));
        await slow.query('commit');
        await slow.end();
      }
    };
    let completed = 0;
    const worker = async (): Promise<void> => {
      while (launching || completed < launched) {
        const claimed = await plane.claim(['a'], 1 + anyOf(5));
        await pass();
        await expectInvariants(plane.database.db);
        for (const one of claimed) {
          const again = one.number < 3 && anyOf(5) === 0;
          await plane.report(one, { status: again ? 'RELEASED' : 'COMPLETED' });
          if (!again) completed += 1;
        }
        if (claimed.length === 0) await plane.rows('select runplane.move_due_tasks(100)');
      }
    };
    await Promise.all([
      Promise.all([launcher(), launcher()]).then(() => (launching = false)),
      worker(),
      worker(),
    ]);
    expect(completed).toBe(launched);
  }, 120_000);
});
