import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { transaction } from '../../src/db/transaction.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { newUuid } from '../../src/domain/ids.ts';
import { claimTasks } from '../../src/scheduler/claim-tasks.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { count } from '../support/tier.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  return () => plane.stop();
});

/** Pools, queues and one agent with a job in each queue, named alike. */
async function set(
  pools: Record<string, { slots: number; elastic?: boolean; queues: Record<string, [number, number?]> }>,
) {
  const { configuration } = plane.services;
  for (const [pool, { slots, elastic = false, queues }] of Object.entries(pools)) {
    await configuration.savePool({ name: pool, slotsPerReplica: slots, elastic }, actor);
    for (const [queue, [weight, sharedWeight = 0]] of Object.entries(queues)) {
      await configuration.saveQueue({ name: queue, pool, weight, sharedWeight }, actor);
      await plane.agent(queue, { queue });
      await plane.job(queue, [queue]);
    }
  }
}

async function launch(job: string, n: number, input: object = {}): Promise<void> {
  for (let left = n; left > 0; left -= 1000) {
    const batch = Array.from({ length: Math.min(left, 1000) }, () => ({ job, config: {}, ...input }));
    const outcomes = await plane.services.intake.launchRuns(batch);
    expect(outcomes.every(({ kind }) => kind === 'LaunchRunSuccess')).toBe(true);
  }
}

const claimFrom = async (pool: string, limit: number, workerId = newUuid()): Promise<Assignment[]> => {
  const outcome = await plane.services.dispatch.claimTasks({ workerId, pool, limit });
  if (outcome.kind !== 'ClaimTasksSuccess') throw new Error(JSON.stringify(outcome));
  return outcome.assignments;
};

const shares = (assignments: readonly { agent: string }[]): Record<string, number> => {
  const sums: Record<string, number> = {};
  for (const { agent } of assignments) sums[agent] = (sums[agent] ?? 0) + 1;
  return sums;
};

const poolId = async (name: string): Promise<string> => {
  const [row] = await plane.rows<{ id: string }>('select id from runplane.pools where name = $1', [name]);
  return row?.id ?? '';
};

describe('weights', () => {
  it.each([1, 7, 100])('share claims of %i between busy queues within 10 %', async (limit) => {
    const total = count({ test: 500, soak: 10_000 });
    await set({ p: { slots: 1000, queues: { a: [1], b: [3], c: [6] } } });
    // A worker that is known.
    await claimFrom('p', 1);
    for (const queue of ['a', 'b', 'c']) await launch(queue, total);
    const agents = await plane.rows<{ id: string }>('select id from runplane.agents');
    const [worker] = await plane.rows<{ id: string }>('select id from runplane.workers');
    const request = {
      agentIds: agents.map(({ id }) => id),
      workerId: worker?.id ?? '',
      claimKey: null,
      leaseSeconds: null,
      poolId: await poolId('p'),
    };
    const claimed: { agent: string }[] = [];
    while (claimed.length < total)
      claimed.push(...(await claimTasks(plane.services.db, { ...request, limit })));
    const got = shares(claimed);
    // Random shares: four standard deviations, at most the 10 % that are promised for 10,000 claims.
    for (const [queue, share] of [
      ['a', 0.1],
      ['b', 0.3],
      ['c', 0.6],
    ] as const) {
      const off = Math.max(0.1 * share * claimed.length, 4 * Math.sqrt(claimed.length * share * (1 - share)));
      expect(Math.abs((got[queue] ?? 0) - share * claimed.length)).toBeLessThan(off);
    }
  });

  it('leave the share of an idle queue to the others', async () => {
    await set({ p: { slots: 1000, queues: { a: [1], b: [99] } } });
    await launch('a', 50);
    expect(shares(await claimFrom('p', 40))).toEqual({ a: 40 });
  });

  it('of 0 get what the others leave', async () => {
    await set({ p: { slots: 1000, queues: { a: [1], never: [0] } } });
    await launch('never', 10);
    await launch('a', 10);
    expect(shares(await claimFrom('p', 10))).toEqual({ a: 10 });
    expect(shares(await claimFrom('p', 5))).toEqual({ never: 5 });
  });
});

describe('pools', () => {
  it('give a worker no more than their slots, each worker its own', async () => {
    await set({ p: { slots: 3, queues: { a: [1] } } });
    await launch('a', 10);
    const worker = newUuid();
    const first = await claimFrom('p', 2, worker);
    expect(first).toHaveLength(2);
    expect(await claimFrom('p', 5, worker)).toHaveLength(1);
    expect(await claimFrom('p', 5, worker)).toHaveLength(0);
    await plane.report(first[0] as Assignment, { status: 'COMPLETED', output: {} });
    expect(await claimFrom('p', 5, worker)).toHaveLength(1);
    expect(await claimFrom('p', 5)).toHaveLength(3);
  });

  it('give no more than their slots to claims at the same time', async () => {
    await set({ p: { slots: 5, queues: { a: [1] } } });
    await launch('a', 50);
    const worker = newUuid();
    const claims = await Promise.all(Array.from({ length: 8 }, () => claimFrom('p', 4, worker)));
    expect(claims.flat()).toHaveLength(5);
  });

  it('leave a worker that names agents to its own limit', async () => {
    await set({ p: { slots: 3, queues: { a: [1] } } });
    await launch('a', 10);
    expect(await plane.claim(['a'], 8)).toHaveLength(8);
  });

  it('that are elastic borrow from queues with a shared weight, by these weights, and from no others', async () => {
    await set({
      own: { slots: 5, queues: { lent: [1, 3], alsoLent: [9, 1], isolated: [9, 0] } },
      spare: { slots: 100, elastic: true, queues: {} },
    });
    for (const queue of ['lent', 'alsoLent', 'isolated']) await launch(queue, 100);
    const got = shares(await claimFrom('spare', 100));
    expect(got.isolated).toBeUndefined();
    expect(got.lent).toBeGreaterThan(55);
    expect((got.lent ?? 0) + (got.alsoLent ?? 0)).toBe(100);
    // Its own pool keeps its slots whatever was lent.
    expect(await claimFrom('own', 100)).toHaveLength(5);
  });

  it('that are not elastic borrow nothing', async () => {
    await set({ own: { slots: 5, queues: { lent: [1, 3] } }, other: { slots: 5, queues: {} } });
    await launch('lent', 5);
    expect(await claimFrom('other', 5)).toEqual([]);
  });

  it('of an unknown name are refused', async () => {
    const outcome = await plane.services.dispatch.claimTasks({ workerId: 'w', pool: 'nowhere', limit: 1 });
    expect(outcome).toMatchObject({ kind: 'InvalidInput', field: 'pool' });
  });
});

describe('customers take turns', () => {
  beforeEach(async () => {
    await set({ p: { slots: 1000, queues: { a: [1] } } });
  });

  const customers = (assignments: readonly Assignment[]) => assignments.map(({ customer }) => customer);

  it('a single task of one is next although another has a backlog', async () => {
    await launch('a', count({ test: 2000, soak: 100_000 }), { customer: 'big' });
    await plane.claim(['a'], 100);
    await launch('a', 1, { customer: 'small' });
    await launch('a', 1);
    expect(new Set(customers(await plane.claim(['a'], 3)))).toEqual(new Set(['big', 'small', null]));
  });

  it('and each has its tasks in order', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 6; i++) ids.push(await plane.launch('a', { customer: i % 2 ? 'x' : 'y' }));
    expect((await plane.claim(['a'], 6)).map(({ runId }) => runId)).toEqual(ids);
  });

  it('one that comes back does not get what it did not use', async () => {
    await launch('a', 2, { customer: 'back' });
    await launch('a', 300, { customer: 'steady' });
    await plane.claim(['a'], 100);
    // The lane's turn is written at most once a second.
    await plane.rows("update runplane.lane_turns set at = at - interval '2 seconds'");
    await plane.claim(['a'], 100);
    await launch('a', 50, { customer: 'back' });
    expect(customers(await plane.claim(['a'], 40)).filter((c) => c === 'back').length).toBeLessThanOrEqual(
      21,
    );
  });

  it('a higher priority goes before all turns', async () => {
    await launch('a', 5, { customer: 'x' });
    await launch('a', 1, { customer: 'x', priority: 1 });
    const [first] = await plane.claim(['a'], 1);
    const [run] = await plane.rows<{ priority: number }>('select priority from runplane.runs where id = $1', [
      first?.runId,
    ]);
    expect(run?.priority).toBe(1);
  });

  it('and what waits for an agent without room delays nothing of the same customer elsewhere', async () => {
    await plane.agent('full', { queue: 'a', maxConcurrentTasks: 0 });
    await plane.job('full', ['full']);
    await launch('full', 500, { customer: 'x' });
    await launch('a', 100, { customer: 'y' });
    await launch('a', 1, { customer: 'x' });
    expect(
      customers(await plane.claim(['full', 'a'], 2)).toSorted((a, b) => (a ?? '').localeCompare(b ?? '')),
    ).toEqual(['x', 'y']);
  });

  it('also over the agents of a queue, and a retry takes a new turn', async () => {
    await plane.agent('b', { queue: 'a' });
    await plane.job('b', ['b']);
    await launch('a', 20, { customer: 'x' });
    await launch('b', 1, { customer: 'y' });
    const claimed = await plane.claim(['a', 'b'], 2);
    expect(new Set(customers(claimed))).toEqual(new Set(['x', 'y']));
    const x = claimed.find(({ customer }) => customer === 'x') as Assignment;
    await plane.report(x, { status: 'FAILED', error: { code: 'E', message: 'again' } });
    const rest = await plane.claim(['a', 'b'], 30);
    expect(rest.at(-1)?.taskId).toBe(x.taskId);
  });
});

describe('an agent that is claimed by serial key', () => {
  beforeEach(async () => {
    await plane.agent('batch', { dispatch: { pull: { batchBySerialKey: true } } });
    await plane.job('batch', ['batch']);
  });
  let launched: string[];
  const prepare = async (): Promise<void> => {
    launched = [];
    for (const serialKey of ['k', 'k', 'l', 'k', 'l'])
      launched.push(await plane.launch('batch', { serialKey }));
  };
  afterEach(() => {
    launched = [];
  });

  it('gets all waiting tasks of a key together, in order', async () => {
    await prepare();
    const claimed = await plane.claim(['batch'], 3);
    expect(claimed.map(({ serialKey }) => serialKey)).toEqual(['k', 'k', 'k']);
    expect(claimed.map(({ runId }) => runId)).toEqual([launched[0], launched[1], launched[3]]);
    const later = await plane.launch('batch', { serialKey: 'k' });
    expect((await plane.claim(['batch'], 10)).map(({ serialKey }) => serialKey)).toEqual(['l', 'l']);
    for (const task of claimed.slice(0, 2)) await plane.report(task, { status: 'COMPLETED', output: {} });
    expect(await plane.claim(['batch'], 10)).toEqual([]);
    await plane.report(claimed[2] as Assignment, { status: 'COMPLETED', output: {} });
    expect((await plane.claim(['batch'], 10)).map(({ runId }) => runId)).toEqual([later]);
  });

  it('in the order of the key, whatever priority they have of their own', async () => {
    await prepare();
    const [lower, , , higher] = await Promise.all(
      launched.map(async (runId) => {
        const [task] = await plane.rows<{ id: string }>('select id from runplane.tasks where run_id = $1', [
          runId,
        ]);
        return task?.id as string;
      }),
    );
    await plane.services.actions.setTaskPriority({ taskId: higher as string, priority: 100 }, actor);
    await plane.services.actions.setTaskPriority({ taskId: lower as string, priority: -100 }, actor);
    const claimed = await plane.claim(['batch'], 5);
    expect(claimed.map(({ runId }) => runId)).toEqual([2, 4, 0, 1, 3].map((n) => launched[n]));
  });

  it('waits for the first of the key, and for each in between, while somebody else holds it', async () => {
    await prepare();
    const [, second, , third] = launched;
    const [first] = await plane.rows<{ id: string }>('select id from runplane.tasks where run_id = $1', [
      launched[0],
    ]);
    await transaction(plane.database.db, async (tx) => {
      await tx.query({
        text: 'select from runplane.ready_tasks where task_id = $1 for update',
        values: [first?.id],
      });
      expect((await plane.claim(['batch'])).map(({ serialKey }) => serialKey)).toEqual(['l', 'l']);
    });
    await transaction(plane.database.db, async (tx) => {
      await tx.query({ text: 'select from runplane.runs where id = $1 for update', values: [second] });
      expect((await plane.claim(['batch'])).map(({ runId }) => runId)).toEqual([launched[0]]);
    });
    expect(await plane.claim(['batch'])).toEqual([]);
    await plane.report({ attemptId: (await leaseOf(first?.id)) ?? '' }, { status: 'COMPLETED', output: {} });
    expect((await plane.claim(['batch'])).map(({ runId }) => runId)).toEqual([second, third]);
  });
  const leaseOf = async (taskId?: string): Promise<string | undefined> =>
    (
      await plane.rows<{ id: string }>('select attempt_id as id from runplane.leases where task_id = $1', [
        taskId,
      ])
    )[0]?.id;

  it('keeps the order of the key when tasks of a batch fail, come back or end in another order', async () => {
    await prepare();
    const [first, second, third] = (await plane.claim(['batch'], 3)) as [Assignment, Assignment, Assignment];
    await plane.report(third, { status: 'COMPLETED', output: {} });
    await plane.report(second, { status: 'FAILED', error: { code: 'E', message: 'again' } });
    expect((await plane.claim(['batch'], 5)).map(({ serialKey }) => serialKey)).toEqual(['l', 'l']);
    await plane.report(first, { status: 'RELEASED' });
    const again = await plane.claim(['batch'], 5);
    expect(again.map(({ taskId }) => taskId)).toEqual([first.taskId, second.taskId]);
  });

  it('gets no more of a key than its limit and the claim leave', async () => {
    await plane.agent('batch', { dispatch: { pull: { batchBySerialKey: true } }, maxConcurrentTasks: 2 });
    await prepare();
    expect(await plane.claim(['batch'], 5)).toHaveLength(2);
    expect(await plane.claim(['batch'], 5)).toEqual([]);
  });

  it('cancels of tasks behind the key meet claims in any order', async () => {
    for (let round = 0; round < 5; round++) {
      const runs: string[] = [];
      for (let i = 0; i < 12; i++) runs.push(await plane.launch('batch', { serialKey: `r${round}` }));
      const cancels = runs
        .filter((_, i) => i % 3 === 1)
        .map((id) => plane.services.actions.cancelRun({ runId: id }, actor));
      const claims = Array.from({ length: 3 }, () => plane.claim(['batch'], 4));
      await Promise.all([...cancels, ...claims]);
      await plane.rows("update runplane.leases set expires_at = runplane.clock() + interval '1 hour'");
    }
  });
});
