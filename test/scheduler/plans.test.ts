import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { createTestDatabase } from '../support/database.ts';
import { pastTasks, readyTasks } from '../support/many-tasks.sql.ts';
import { collectPlans, firstColumns, fullReads, type ShownPlan, showPlans } from '../support/plans.ts';

/** Tables that grow, with the work that waits or that was ever done, or with dead rows that cannot be removed yet. */
const growing = new Set([
  'tasks',
  'runs',
  'attempts',
  'ready_tasks',
  'delayed_tasks',
  'serial_tasks',
  'leases',
  'task_progress',
  'run_steps',
  'step_waits',
  'change_log',
  'usage',
]);

let answers = 0;
const usage = () => ({
  model: 'model',
  inputTokens: 10,
  outputTokens: 10,
  responseId: `answer-${answers++}`,
});

/**
 * Plans are kept, so it counts how they were made: when nothing was running yet, as after each start, or nothing there at
 * all. Behind a pooler nothing is prepared, and no plan outlives what it was made for.
 */
describe.skipIf(process.env.TEST_POOLER_URL !== undefined).each([
  { were: 'with a backlog and a past, and empty places', empty: false },
  { were: 'in a new installation', empty: true },
])('planned $were,', ({ empty }) => {
  const agents = ['writer', 'critic', 'limited'];
  let plans: ShownPlan[] = [];
  let plane: ControlPlane;

  beforeAll(async () => {
    const database = await createTestDatabase();
    await showPlans(database);
    plane = await ControlPlane.start({ database });
    plans = collectPlans(plane);
    const limits = {
      maxConcurrentTasks: 1000,
      maxTokensPerMinute: 1_000_000_000,
      maxRequestsPerMinute: 100_000,
    };
    const saved = await plane.services.configuration.saveThrottle({ name: 'provider', ...limits }, actor);
    expect(saved.kind).toBe('SaveThrottleSuccess');
    for (const name of agents) {
      await plane.agent(name, name === 'limited' ? { throttles: ['provider'], maxConcurrentTasks: 500 } : {});
      await plane.job(name, [{ name: 'only', agent: name }]);
    }
    await plane.job('spawning', [
      { name: 'start', agent: 'writer' },
      { name: 'join', agent: 'critic', dependsOn: ['start'] },
    ]);
    const insert = async (): Promise<void> => {
      for (const statement of [
        ...readyTasks({ agents, count: 20_000, priority: 0 }),
        ...pastTasks({ agents, count: 5000 }),
      ])
        await plane.rows(statement);
    };
    if (empty) {
      for (let n = 0; n < 50; n++) await plane.launch(agents[n % 3] as string);
      await work();
      await insert();
    } else {
      await insert();
      // What was there is over: the planner knows the places as empty, and they have dead rows.
      await work();
      await plane.rows('vacuum analyze');
    }
  });

  /** Everything that happens to tasks again and again. */
  async function work(): Promise<void> {
    const claimed = await plane.claim(agents, 50);
    expect(claimed).toHaveLength(50);
    await plane.services.dispatch.extendLeases(
      claimed.map((one) => ({ ...plane.credentials(one), progress: 0.5, usage: [usage()] })),
    );
    await Promise.all(
      claimed.map((one, i) =>
        plane.report(
          one,
          i % 10 === 0
            ? { status: 'FAILED', error: { code: 'AGAIN', retryAfterSeconds: 3600 } }
            : { status: 'COMPLETED', output: { n: 1 }, usage: [usage()] },
        ),
      ),
    );
    const runId = await plane.launch('spawning', { priority: 10, serialKey: 'k' });
    const [first] = await plane.claim(['writer'], 1);
    expect(first?.runId).toBe(runId);
    const spawn = Array.from({ length: 20 }, (_, n) => ({
      agent: 'writer',
      priority: 10,
      ...(n % 2 === 0 ? { step: 'part' } : { step: 'rest', dependsOn: ['part'] }),
    }));
    const spawned = await plane.report(first as Assignment, { status: 'COMPLETED', spawn });
    expect(spawned).toMatchObject({ outcome: 'APPLIED' });
    await Promise.all(
      (await plane.claim(['writer'], 10)).map((one) => plane.report(one, { status: 'COMPLETED' })),
    );
    await plane.services.actions.cancelRun({ runId }, actor);
  }
  // Without the invariants, which compare all changes with each other: that is for smaller tests.
  afterAll(async () => {
    await plane.services.stop();
    await plane.database.drop();
  });

  it('claims and results find all their rows by key', async () => {
    plans.length = 0;
    await work();
    await work();
    const seen = plans.map(({ query }) => query).join('\n');
    for (const part of [
      'delete from runplane.ready_tasks',
      'insert into runplane.attempts',
      'runplane.complete_attempts(',
      'insert into runplane.settled_attempts',
      'for no key update',
    ])
      expect(seen.toLowerCase()).toContain(part);
    const columns = await firstColumns(plane.database);
    expect([...new Set(plans.flatMap((plan) => fullReads(plan, growing, columns)))]).toEqual([]);
  });
});
