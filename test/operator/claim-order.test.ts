import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newUuid } from '../../src/domain/ids.ts';
import { claimTasks } from '../../src/scheduler/claim-tasks.ts';
import { actor, type Operator, startOperator } from './fixture.ts';
import { apply } from './manifest/fixture.ts';

let operator: Operator;
beforeAll(async () => {
  operator = await startOperator();
});
afterAll(() => operator.close());

/** A transaction beside the saves, as a claim is one. */
let claim: pg.Client;
beforeEach(async () => {
  const { configuration } = operator;
  await configuration.saveThrottle({ name: 'openai', maxConcurrentTasks: 8 }, actor);
  await configuration.saveAgent({ name: 'parser', dispatch: { pull: {} }, throttles: ['openai'] }, actor);
  claim = new pg.Client({ connectionString: operator.database.url });
  await claim.connect();
  await claim.query('begin');
  return () => claim.end();
});

const holds = (table: string, name: string): Promise<unknown> =>
  claim.query(`select from runplane.${table} where name = $1 for no key update`, [name]);

/** Resolves once a session waits for a lock of the claim. */
async function somebodyWaits(): Promise<void> {
  for (;;) {
    const { rows } = await claim.query(
      'select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid)) and pid <> pg_backend_pid()',
    );
    if (rows.length > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
    await claim.query('select pg_stat_clear_snapshot()');
  }
}

async function throttlesOf(agent: string): Promise<string[]> {
  const { rows } = await operator.database.db.query<{ name: string }>({
    text: `select t.name from runplane.agent_throttles x join runplane.agents a on a.id = x.agent_id
             join runplane.throttles t on t.id = x.throttle_id where a.name = $1 order by t.name`,
    values: [agent],
  });
  return rows.map(({ name }) => name);
}

/** The save must neither be over nor visible before the claim is over. */
async function waitsForClaim<T>(saving: Promise<T>): Promise<T> {
  let saved = false;
  void saving.then(() => {
    saved = true;
  });
  await somebodyWaits();
  expect(saved).toBe(false);
  await claim.query('commit');
  return saving;
}

describe('a change of limits takes its turn with claims', () => {
  it.each([
    ['joins', 'gpu', ['openai', 'gpu']],
    ['leaves', 'openai', []],
    ['keeps', 'openai', ['openai']],
  ])('when an agent %s the throttle %s', async (_, throttle, throttles) => {
    await holds('throttles', throttle);
    const saving = operator.configuration.saveAgent(
      { name: 'parser', description: 'changed', dispatch: { pull: {} }, throttles },
      actor,
    );
    expect(await waitsForClaim(saving)).toMatchObject({ kind: 'SaveAgentSuccess' });
    expect(await throttlesOf('parser')).toEqual(throttles.toSorted());
  });

  it('and holds the agent while it waits for a throttle, as claims do', async () => {
    await holds('throttles', 'gpu');
    const saving = operator.configuration.saveAgent(
      { name: 'parser', dispatch: { pull: {} }, throttles: ['gpu'], maxConcurrentTasks: 1 },
      actor,
    );
    await somebodyWaits();
    const { rows } = await claim.query(
      "select from runplane.agents where name = 'parser' for no key update skip locked",
    );
    expect(rows).toEqual([]);
    await claim.query('commit');
    expect(await saving).toMatchObject({ kind: 'SaveAgentSuccess' });
  });

  it('when an agent gets a limit of its own', async () => {
    await holds('agents', 'parser');
    const saving = operator.configuration.saveAgent(
      { name: 'parser', dispatch: { pull: {} }, maxConcurrentTasks: 2 },
      actor,
    );
    expect(await waitsForClaim(saving)).toMatchObject({ kind: 'SaveAgentSuccess' });
  });

  it('when a throttle gets a lower limit', async () => {
    await holds('throttles', 'openai');
    const saving = operator.configuration.saveThrottle({ name: 'openai', maxConcurrentTasks: 1 }, actor);
    expect(await waitsForClaim(saving)).toMatchObject({ kind: 'SaveThrottleSuccess' });
  });

  it('when an agent is paused', async () => {
    await holds('agents', 'parser');
    const pausing = operator.configuration.pauseAgent({ name: 'parser' }, actor);
    expect(await waitsForClaim(pausing)).toMatchObject({ kind: 'SaveAgentSuccess' });
    await operator.configuration.resumeAgent({ name: 'parser' }, actor);
  });

  it('when the queue of an agent is paused', async () => {
    await holds('agents', 'parser');
    const pausing = operator.configuration.pauseQueue({ name: 'default' }, actor);
    expect(await waitsForClaim(pausing)).toMatchObject({ kind: 'SaveQueueSuccess' });
    await operator.configuration.resumeQueue({ name: 'default' }, actor);
  });

  it('when the pool of an agent gets fewer slots', async () => {
    await holds('agents', 'parser');
    const saving = operator.configuration.savePool({ name: 'core', slotsPerReplica: 1 }, actor);
    expect(await waitsForClaim(saving)).toMatchObject({ kind: 'SavePoolSuccess' });
  });

  it.each([
    ['pauses the queue', 'queues: [{ name: default, pool: core, weight: 1, sharedWeight: 3, paused: true }]'],
    ['gives the pool fewer slots', 'pools: [{ name: core, slotsPerReplica: 2 }]'],
  ])('when a manifest %s', async (_, manifest) => {
    await holds('agents', 'parser');
    const applied = apply({ services: operator.database }, manifest);
    expect(await waitsForClaim(applied)).toMatchObject({ kind: 'Applied' });
    await operator.configuration.resumeQueue({ name: 'default' }, actor);
  });
});

it('saves of agents that share throttles do not wait for each other in a circle', async () => {
  await claim.query('rollback');
  const rounds = Array.from({ length: 60 }, (_, i) =>
    operator.configuration.saveAgent(
      {
        name: i % 2 ? 'parser' : 'embedder',
        description: `round ${i}`,
        dispatch: { pull: {} },
        throttles: i % 3 ? ['openai', 'gpu'] : ['gpu'],
      },
      actor,
    ),
  );
  const outcomes = await Promise.all(rounds);
  expect(outcomes.every(({ kind }) => kind === 'SaveAgentSuccess')).toBe(true);
});

it('a claim that waits for a throttle holds none that comes after it', async () => {
  const { configuration, database } = operator;
  await configuration.saveThrottle({ name: 'gpu' }, actor);
  await configuration.saveAgent(
    { name: 'busy', dispatch: { pull: {} }, throttles: ['openai', 'gpu'] },
    actor,
  );
  const [agent] = (
    await database.db.query<{ id: string }>({ text: `select id from runplane.agents where name = 'busy'` })
  ).rows;
  await claim.query(
    `insert into runplane.ready_tasks (agent_id, priority_key, turn, rank, task_id, run_id, sequence, attempts, ready_at)
     values ($1, 0, 1, 1, gen_random_uuid(), gen_random_uuid(), 1, 0, runplane.clock())`,
    [agent?.id],
  );
  await claim.query('commit');
  await claim.query('begin');
  await holds('throttles', 'openai');
  const other = claimTasks(database.db, {
    agentIds: [agent?.id ?? ''],
    limit: 1,
    workerId: newUuid(),
    claimKey: null,
    poolId: null,
    leaseSeconds: null,
  });
  await somebodyWaits();
  await claim.query(`select from runplane.throttles where name = 'gpu' for no key update nowait`);
  await claim.query('delete from runplane.ready_tasks');
  await claim.query('commit');
  expect(await other).toEqual([]);
});
