import { afterAll, beforeAll, expect, test } from 'vitest';
import { ControlPlane } from '../../support/control-plane.ts';
import { count } from '../../support/tier.ts';
import { ann, apply, auditOf, told } from './fixture.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await ControlPlane.start();
});
afterAll(() => plane.stop());

const agents = (seconds: number, more = '') =>
  `agents: [${['a', 'b', 'c'].map((name) => `{ name: ${name}, dispatch: { pull: {} }, leaseSeconds: ${seconds}${more} }`).join(', ')}]`;
const leases = () =>
  plane.rows<{ name: string; seconds: number; version: number }>(
    `select name, lease_seconds as seconds, version from runplane.agents order by name`,
  );

test('ifVersion refuses all when somebody changed an object since, and is no matter where nothing has to change', async () => {
  await apply(plane, agents(60));
  await plane.services.configuration.saveAgent({ name: 'b', dispatch: { pull: {} }, leaseSeconds: 61 }, ann);
  const before = await leases();
  const outcome = await apply(plane, agents(70, ', ifVersion: 1'));
  expect(outcome).toEqual({
    kind: 'Refused',
    problems: [
      { noun: 'agent', index: 1, field: 'ifVersion', message: expect.stringContaining('has version 2') },
    ],
  });
  expect(await leases()).toEqual(before);
  const repeated = agents(60, ', ifVersion: 1').replace('name: b', 'name: d');
  expect(
    told(await apply(plane, repeated.replace('ifVersion: 1 }, { name: c', 'ifVersion: 0 }, { name: c'))),
  ).toEqual(['unchanged agent a', 'create agent d', 'unchanged agent c']);
  expect(told(await apply(plane, repeated))).toEqual([
    'unchanged agent a',
    'unchanged agent d',
    'unchanged agent c',
  ]);
});

test('a save that commits while a manifest waits for it is overwritten, and told and audited as what was there', async () => {
  await apply(plane, agents(60));
  const client = await plane.database.db.pool.connect();
  await client.query('begin');
  await client.query(`update runplane.agents set lease_seconds = 77, version = version + 1 where name = 'a'`);
  const applying = apply(plane, agents(80));
  await plane.untilBlocked(1);
  await client.query('commit');
  client.release();
  const outcome = await applying;
  const changes = outcome.kind === 'Applied' ? outcome.changes : [];
  expect(changes[0]?.fields).toEqual([{ path: 'leaseSeconds', before: 77, after: 80 }]);
  const entries = (await auditOf(plane)).filter(({ target }) => target === 'a');
  expect(entries.at(-1)).toMatchObject({ before: { leaseSeconds: 77 }, after: { leaseSeconds: 80 } });
  expect((await leases()).slice(0, 3).map(({ seconds }) => seconds)).toEqual([80, 80, 80]);
});

test('manifests that are applied at once follow each other, and each is in force as a whole', async () => {
  for (let round = 0; round < count({ test: 5, soak: 100 }); round++) {
    await apply(
      plane,
      agents(60).replace(
        'name: a, dispatch: { pull: {} }, leaseSeconds: 60',
        'name: a, dispatch: { pull: {} }, leaseSeconds: 90',
      ),
    );
    // What the one leaves as it is, the other changes.
    await Promise.all([apply(plane, agents(60)), apply(plane, agents(90))]);
    const seconds = new Set((await leases()).filter(({ name }) => name < 'd').map((row) => row.seconds));
    expect(seconds.size).toBe(1);
  }
});

test('manifests, saves and claims of the same agents and throttles never lock each other in a circle', async () => {
  const manifest = (limit: number, other: number) => `
throttles: [{ name: t2, maxConcurrentTasks: ${limit} }, { name: t1, maxConcurrentTasks: ${limit} }]
agents:
  - { name: b, dispatch: { pull: {} }, throttles: [${other === 0 ? 't1' : 't1, t2'}], leaseSeconds: ${limit} }
  - { name: a, dispatch: { pull: {} }, throttles: [${other === 0 ? 't2, t1' : 't2'}], leaseSeconds: ${limit} }
jobs: [{ name: j, steps: [{ name: a, agent: a }, { name: b, agent: b }] }]
`;
  await apply(plane, manifest(20, 0));
  const { configuration } = plane.services;
  const deadlocks = async () => {
    await plane.rows('select pg_stat_force_next_flush()');
    return (await plane.rows('select deadlocks from pg_stat_database where datname = current_database()'))[0];
  };
  const before = await deadlocks();
  const rounds = count({ test: 15, soak: 300 });
  const many = async (work: (round: number) => Promise<unknown>) => {
    for (let round = 0; round < rounds; round++) await work(round);
  };
  await Promise.all([
    many((round) => apply(plane, manifest(20 + round, round % 2))),
    many((round) =>
      configuration.saveAgent(
        { name: round % 2 ? 'a' : 'b', dispatch: { pull: {} }, throttles: ['t1', 't2'], leaseSeconds: 30 },
        ann,
      ),
    ),
    many((round) =>
      configuration.saveThrottle({ name: round % 2 ? 't1' : 't2', maxConcurrentTasks: round }, ann),
    ),
    many(async () => {
      await plane.launch('j');
      for (const task of await plane.claim(['a', 'b'])) await plane.report(task, { status: 'COMPLETED' });
    }),
  ]);
  expect(await deadlocks()).toEqual(before);
});
