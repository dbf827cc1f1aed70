import { afterEach, beforeEach, expect, test } from 'vitest';
import { transaction } from '../../src/db/transaction.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { Client } from '../graphql/client.ts';
import { at, stopClock } from '../support/clock.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { waitingOf } from '../support/waiting.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await passTo(0);
});
afterEach(() => plane.stop());

const passTo = (seconds: number): Promise<void> => stopClock(plane.database.db, at(seconds));

/** Agents of a queue, each with a job of its name. */
async function agents(names: string[], input: object = {}): Promise<void> {
  for (const name of names) {
    await plane.agent(name, input);
    await plane.job(name, [name]);
  }
}

async function claim(input: object): Promise<Assignment[]> {
  const claimed = await plane.services.dispatch.claimTasks({ workerId: 'w', limit: 1, ...input });
  if (claimed.kind !== 'ClaimTasksSuccess') throw new Error(JSON.stringify(claimed));
  return claimed.assignments;
}

const beat = async (assignment: Assignment | undefined): Promise<string | undefined> => {
  if (!assignment) throw new Error('nothing was claimed');
  const [lease] = await plane.services.dispatch.extendLeases([plane.credentials(assignment)]);
  return lease?.state;
};

const reasonOf = async (runId: string): Promise<string | undefined> => {
  const [task] = await plane.rows<{ id: string }>('select id from runplane.tasks where run_id = $1', [runId]);
  return (await waitingOf(plane.database.db, task?.id ?? ''))?.reason;
};

const pool = async (name: string): Promise<object> => {
  const { pools } = await new Client(plane).query('{ pools { name replicas slots busySlots } }');
  const { name: _, ...use } = pools.find((one: { name: string }) => one.name === name);
  return use;
};
const liveWorkers = async () => {
  const { workers } = await new Client(plane).query(
    '{ workers { nodes { name slots busySlots pool { name } agents { name } lastSeenAt } } }',
  );
  return workers.nodes;
};
const named = (names: string[]) => names.map((name) => ({ name }));

test('a worker that only beats for what it runs is live, and its pool is busy and not without workers', async () => {
  await plane.services.configuration.savePool({ name: 'core', slotsPerReplica: 1 }, actor);
  await agents(['a', 'other'], { leaseSeconds: 60 });
  await plane.launch('a');
  const [task] = await claim({ pool: 'core', slots: 1 });
  const next = await plane.launch('a');
  const ofOther = await plane.launch('other');
  for (let seconds = 20; seconds <= 600; seconds += 20) {
    await passTo(seconds);
    expect(await beat(task)).toBe('HELD');
  }
  expect(await reasonOf(next)).toBe('POOL_BUSY');
  expect(await reasonOf(ofOther)).toBe('POOL_BUSY');
  expect(await pool('core')).toEqual({ replicas: 1, slots: 1, busySlots: 1 });
  expect(await liveWorkers()).toEqual([
    {
      name: 'w',
      slots: 1,
      busySlots: 1,
      pool: { name: 'core' },
      agents: named(['a', 'other']),
      lastSeenAt: at(600).toISOString(),
    },
  ]);

  // Its last task is over and it is not heard of any more.
  if (task) await plane.report(task, { status: 'COMPLETED' });
  await passTo(659);
  expect(await liveWorkers()).toHaveLength(1);
  await passTo(661);
  expect(await liveWorkers()).toEqual([]);
  expect(await reasonOf(next)).toBe('NO_WORKER');
  expect(await pool('core')).toEqual({ replicas: 0, slots: 0, busySlots: 0 });
});

test('a worker whose leases are so long that it seldom beats is live while one of them holds', async () => {
  await agents(['a'], { leaseSeconds: 900 });
  await plane.launch('a');
  await claim({ agents: ['a'], slots: 1 });
  const next = await plane.launch('a');
  await passTo(899);
  expect(await reasonOf(next)).toBe('POOL_BUSY');
  expect(await liveWorkers()).toHaveLength(1);
  await passTo(901);
  expect(await reasonOf(next)).toBe('NO_WORKER');
  expect(await liveWorkers()).toEqual([]);
});

test('heartbeats write down at most every 10 seconds that a worker was heard of', async () => {
  await agents(['a'], { leaseSeconds: 60 });
  for (let i = 0; i < 3; i++) await plane.launch('a');
  const claimed = await claim({ agents: ['a'], limit: 3 });
  const beatAll = () => plane.services.dispatch.extendLeases(claimed.map((one) => plane.credentials(one)));
  const versions = new Set<string>();
  for (let seconds = 1; seconds <= 30; seconds++) {
    await passTo(seconds);
    await beatAll();
    const [row] = await plane.rows<{ version: string }>('select xmin::text as version from runplane.workers');
    versions.add(row?.version ?? '');
  }
  expect(versions.size).toBeLessThanOrEqual(4);
  const [worker] = await liveWorkers();
  expect(new Date(worker.lastSeenAt).getTime()).toBeGreaterThanOrEqual(at(20).getTime());
});

test('heartbeats wait for nobody who writes about the worker', async () => {
  await agents(['a'], { leaseSeconds: 60 });
  await plane.launch('a');
  const [task] = await claim({ agents: ['a'] });
  await passTo(30);
  await transaction(plane.database.db, async (tx) => {
    await tx.query({ text: 'select from runplane.workers for update' });
    expect(await beat(task)).toBe('HELD');
  });
});

test('a process with several loops serves what each of them asks for', async () => {
  await plane.services.configuration.savePool({ name: 'wiki', slotsPerReplica: 8 }, actor);
  await plane.services.configuration.savePool({ name: 'core', slotsPerReplica: 8 }, actor);
  await agents(['a', 'b', 'unasked']);
  await agents(['page'], { queue: 'wiki' });
  await claim({ agents: ['a'] });
  await claim({ agents: ['b'] });
  await claim({ pool: 'wiki' });
  await claim({ pool: 'core', agents: ['b'] });
  const runs = new Map<string, string>();
  for (const name of ['a', 'b', 'unasked', 'page']) runs.set(name, await plane.launch(name));
  const reasons = async () =>
    Object.fromEntries(
      await Promise.all([...runs].map(async ([name, run]) => [name, await reasonOf(run)] as const)),
    );
  expect(await reasons()).toEqual({
    a: 'BEHIND_OTHERS',
    b: 'BEHIND_OTHERS',
    unasked: 'NO_WORKER',
    page: 'BEHIND_OTHERS',
  });
  expect(await pool('wiki')).toEqual({ replicas: 1, slots: 8, busySlots: 0 });
  expect(await pool('core')).toEqual({ replicas: 1, slots: 8, busySlots: 0 });
  expect(await liveWorkers()).toMatchObject([{ pool: { name: 'core' }, agents: named(['a', 'b', 'page']) }]);

  // One loop goes on, by another replica; the others have ended.
  await passTo(61);
  const other = await ControlPlane.start({ database: plane.database });
  await other.claim(['a'], 1, { workerId: 'w' });
  await other.services.stop();
  expect(await reasons()).toMatchObject({ a: undefined, b: 'NO_WORKER', page: 'NO_WORKER' });
  expect(await liveWorkers()).toMatchObject([{ pool: null, agents: named(['a']) }]);
});
