import pg from 'pg';
import { beforeEach, expect, test } from 'vitest';
import { apply } from '../operator/manifest/fixture.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
/** A claim by hand: what it holds, another one waits for. */
let claim: pg.Client;
beforeEach(async () => {
  plane = await ControlPlane.start();
  const { configuration } = plane.services;
  await configuration.savePool({ name: 'p', slotsPerReplica: 4 }, actor);
  await configuration.savePool({ name: 'elastic', slotsPerReplica: 4, elastic: true }, actor);
  await configuration.saveQueue({ name: 'q', pool: 'p', sharedWeight: 1 }, actor);
  await plane.agent('a', { queue: 'q' });
  await plane.job('one', ['a']);
  for (let i = 0; i < 6; i++) await plane.launch('one');
  claim = new pg.Client({ connectionString: plane.database.url });
  await claim.connect();
  return async () => {
    await claim.end();
    await plane.stop();
  };
});

const claimOfPool = async (pool = 'p'): Promise<number> => {
  const outcome = await plane.services.dispatch.claimTasks({
    workerId: plane.workerId,
    pool,
    limit: 100,
  });
  if (outcome.kind !== 'ClaimTasksSuccess') throw new Error(JSON.stringify(outcome));
  return outcome.assignments.length;
};

/** Begins a claim, and then a change, while the agent is held; so both wait for it, in this order or the other. */
async function whileAgentIsHeld<T>(first: () => Promise<T>, then: () => Promise<unknown>): Promise<T> {
  await claim.query(`begin; select from runplane.agents where name = 'a' for no key update`);
  const begun = first();
  await plane.untilBlocked(1);
  const next = then();
  await plane.untilBlocked(2);
  await claim.query('commit');
  await next;
  return begun;
}

test.each([
  { pool: 'p', by: 'itself' },
  { pool: 'elastic', by: 'itself' },
  { pool: 'p', by: 'a manifest' },
  { pool: 'elastic', by: 'a manifest' },
])('a claim that waits while its pool ($pool) gets one slot, by $by, takes no more', async ({ pool, by }) => {
  const elastic = pool === 'elastic';
  const save = async (): Promise<{ kind: string }> =>
    by === 'itself'
      ? plane.services.configuration.savePool({ name: pool, slotsPerReplica: 1, elastic }, actor)
      : apply(plane, `pools: [{ name: ${pool}, slotsPerReplica: 1, elastic: ${elastic} }]`);
  const changed = whileAgentIsHeld(save, async () => expect(await claimOfPool(pool)).toBe(1));
  expect((await changed).kind).toMatch(/Applied|Success/);
  expect(await claimOfPool(pool)).toBe(0);
});

test('a claim that waits while its queue ceases to lend to its pool takes nothing', async () => {
  const saved = whileAgentIsHeld(
    () => plane.services.configuration.saveQueue({ name: 'q', pool: 'p', sharedWeight: 0 }, actor),
    async () => expect(await claimOfPool('elastic')).toBe(0),
  );
  expect(await saved).toMatchObject({ kind: 'SaveQueueSuccess' });
});

test('a claim that waits while its queue is paused takes nothing', async () => {
  const paused = whileAgentIsHeld(
    () => plane.services.configuration.pauseQueue({ name: 'q' }, actor),
    async () => expect(await claimOfPool()).toBe(0),
  );
  expect(await paused).toMatchObject({ kind: 'SaveQueueSuccess' });
});

test('a pause answers after the claim that came before it', async () => {
  const leases = async () => (await plane.rows('select from runplane.leases')).length;
  let whenPaused = 0;
  const claimed = await whileAgentIsHeld(claimOfPool, async () => {
    await plane.services.configuration.pauseQueue({ name: 'q' }, actor);
    whenPaused = await leases();
  });
  expect([claimed, whenPaused, await leases()]).toEqual([4, 4, 4]);
});
