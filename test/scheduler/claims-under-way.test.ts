import pg from 'pg';
import { beforeEach, expect, test } from 'vitest';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
/** A claim by hand: what it holds, another one waits for. */
let claim: pg.Client;
beforeEach(async () => {
  plane = await ControlPlane.start();
  const { configuration } = plane.services;
  await configuration.savePool({ name: 'p', slotsPerReplica: 4 }, actor);
  await configuration.saveQueue({ name: 'q', pool: 'p' }, actor);
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

const claimOfPool = async (): Promise<number> => {
  const outcome = await plane.services.dispatch.claimTasks({
    workerId: plane.workerId,
    pool: 'p',
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

test('a claim that waits while its pool loses slots takes no more than are left', async () => {
  const changed = whileAgentIsHeld(
    () => plane.services.configuration.savePool({ name: 'p', slotsPerReplica: 1 }, actor),
    async () => expect(await claimOfPool()).toBe(1),
  );
  expect(await changed).toMatchObject({ kind: 'SavePoolSuccess' });
  expect(await claimOfPool()).toBe(0);
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
