import pg from 'pg';
import { beforeEach, expect, test } from 'vitest';
import { ControlPlane } from '../../support/control-plane.ts';
import { count } from '../../support/tier.ts';
import { ann, apply, told } from './fixture.ts';

let plane: ControlPlane;
/** A transaction that takes locks in their order, as everybody does. */
let other: pg.Client;
beforeEach(async () => {
  plane = await ControlPlane.start();
  other = new pg.Client({ connectionString: plane.database.url });
  await other.connect();
  return async () => {
    await other.end();
    await plane.stop();
  };
});

async function deadlocks(): Promise<number | undefined> {
  await plane.rows('select pg_stat_force_next_flush()');
  const found = await plane.rows<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  );
  return Number(found[0]?.deadlocks);
}
const saveAgent = (name: string, throttles: string[]) =>
  plane.services.configuration.saveAgent({ name, dispatch: { pull: {} }, throttles }, ann);

test('an agent that is saved while a manifest creates it is waited for before anything is held', async () => {
  await apply(plane, 'throttles: [{ name: t }]\npools: [{ name: p, slotsPerReplica: 1 }]');
  // Between the throttles and the agents, the manifest waits for the pool.
  await other.query(`begin; select from runplane.pools where name = 'p' for update`);
  const applied = apply(
    plane,
    `pools: [{ name: p, slotsPerReplica: 2 }]\nagents: [{ name: a, dispatch: { pull: {} }, throttles: [t], leaseSeconds: 90 }]`,
  );
  await plane.untilBlocked(1);
  const saved = saveAgent('a', ['t']);
  await plane.untilBlocked(2);
  await other.query('commit');
  expect(told(await applied)).toEqual(['update pool p', 'create agent a']);
  expect(await saved).toMatchObject({ kind: 'SaveAgentSuccess', version: 2 });
  expect(await deadlocks()).toBe(0);
});

test('a job that the server installs while a manifest creates it and its route is waited for, too', async () => {
  await apply(plane, `agents: [{ name: a, dispatch: { pull: {} } }]`);
  const steps = [{ name: 'only', agent: 'a', assetKey: 'made' }];
  await other.query('begin');
  await other.query(`insert into runplane.assets (id, key) values (gen_random_uuid(), 'made')`);
  const installed = plane.services.configuration.installJob(
    { job: { name: 'j', steps }, route: { name: 'r', topic: 'x', job: 'j' } },
    ann,
  );
  await plane.untilBlocked(1);
  const applied = apply(
    plane,
    `jobs: [{ name: other, steps: [{ name: only, agent: a, assetKey: made }] }]\nroutes: [{ name: r, topic: y, job: other }]`,
  );
  await plane.untilBlocked(2);
  await other.query('rollback');
  expect(await installed).toMatchObject({ kind: 'InstallJobSuccess' });
  expect(told(await applied)).toEqual(['create job other', 'update route r']);
  expect(await deadlocks()).toBe(0);
});

test('turns of queues are carried in the order in which claims take them', async () => {
  await apply(plane, 'queues: [{ name: q, pool: core }, { name: r, pool: core }]');
  const [first, last] = await plane.rows<{ id: string; name: string }>(
    `select id, name from runplane.queues where name in ('q', 'r') order by id`,
  );
  if (!first || !last) throw new Error('there are no queues');
  for (const name of ['a', 'b']) {
    await saveAgent(name, []);
    await plane.job(name, [name]);
    await plane.launch(name);
  }
  await plane.rows(
    'insert into runplane.lane_turns (queue_id, priority, turn, at) select id, 0, 1, runplane.clock() from unnest($1::uuid[]) id',
    [[first.id, last.id]],
  );
  const lane = 'select from runplane.lane_turns where queue_id = $1 for update nowait';
  await other.query('begin');
  await other.query(lane, [first.id]);
  const agents = [last, first].map(
    (queue, i) => `{ name: ${'ab'[i]}, dispatch: { pull: {} }, queue: ${queue.name} }`,
  );
  const applied = apply(plane, `agents: [${agents.join(', ')}]`);
  await plane.untilBlocked(1);
  await other.query(lane, [last.id]);
  await other.query('commit');
  expect(told(await applied)).toEqual(['update agent a', 'update agent b']);
});

test('assets are created in the order in which results create them', async () => {
  await apply(plane, 'agents: [{ name: a, dispatch: { pull: {} } }]');
  const create = `insert into runplane.assets (id, key) values (gen_random_uuid(), $1)`;
  await other.query('begin');
  await other.query(create, ['a']);
  const jobs = ['b', 'a'].map(
    (key) => `{ name: job-${key}, steps: [{ name: only, agent: a, assetKey: ${key} }] }`,
  );
  const applied = apply(plane, `jobs: [${jobs.join(', ')}]`);
  await plane.untilBlocked(1);
  await other.query(create, ['b']);
  await other.query('commit');
  expect(told(await applied)).toEqual(['create job job-b', 'create job job-a']);
  expect(await deadlocks()).toBe(0);
});

test('manifests, saves and claims of what is created and moved at once never lock each other in a circle', async () => {
  const names = ['a', 'b', 'c'];
  const manifest = (round: number) => `
throttles: [{ name: s${round} }, { name: t, maxConcurrentTasks: ${round + 100} }]
queues: [{ name: q, pool: core }, { name: r, pool: core }]
agents:
  - { name: new${round}, dispatch: { pull: {} }, throttles: [t, s${round}], leaseSeconds: 90 }
${names.map((name, i) => `  - { name: ${name}, dispatch: { pull: {} }, throttles: [t], queue: ${(round + i) % 2 ? 'q' : 'r'} }`).join('\n')}
jobs:
${['z', 'y'].map((key) => `  - { name: new-${key}${round}, steps: [{ name: only, agent: new${round}, assetKey: ${key}${round} }] }`).join('\n')}
`;
  await apply(plane, manifest(0));
  for (const name of names) await plane.job(name, [name]);
  const rounds = count({ test: 15, soak: 300 });
  const many = async (work: (round: number) => Promise<unknown>) => {
    for (let round = 1; round <= rounds; round++) await work(round);
  };
  await many((round) =>
    Promise.all([
      apply(plane, manifest(round)),
      saveAgent(`new${round}`, ['t']),
      plane.services.configuration.saveThrottle({ name: `s${round}`, maxConcurrentTasks: 9 }, ann),
      plane.job(`both${round}`, [
        { name: 'one', agent: 'a', assetKey: `y${round}` },
        { name: 'two', agent: 'a', assetKey: `z${round}` },
      ]),
      (async () => {
        for (const job of names) await plane.launch(job, { customer: `c${round}` });
        for (const task of await plane.claim(names)) await plane.report(task, { status: 'COMPLETED' });
      })(),
    ]),
  );
  expect(await deadlocks()).toBe(0);
});
