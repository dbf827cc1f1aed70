import { expect, test } from 'vitest';
import { createRead } from '../../src/read/read.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { createTestDatabase } from '../support/database.ts';
import { collectPlans, manyRows, showPlans } from '../support/plans.ts';

// Behind a pooler no session tells its plans.
test.skipIf(process.env.TEST_POOLER_URL !== undefined)(
  'what waits for a reason is found once, also when the planner believes that hardly any task is there',
  async () => {
    const database = await createTestDatabase();
    await showPlans(database, { measured: true });
    const plane = await ControlPlane.start({ database });
    const plans = collectPlans(plane);
    await plane.agent('a');
    await plane.job('a', ['a', { name: 'after', agent: 'a', dependsOn: ['a'] }]);
    const later = { availableAt: new Date(Date.now() + 3_600_000) };
    const launch = (n: number, input: object = {}): Promise<unknown> =>
      plane.services.intake.launchRuns(Array.from({ length: n }, () => ({ job: 'a', ...input })));
    const cancelAll = (): Promise<unknown> =>
      plane.services.actions.cancelTasks({ filter: { agents: ['a'] } }, actor);
    await launch(3);
    await cancelAll();
    await launch(2, later);
    await plane.rows('analyze');
    await launch(1000);
    await cancelAll();
    await launch(1000, later);

    plans.length = 0;
    const read = createRead(plane.services.db);
    const waits = { waitingReasons: ['NOT_BEFORE'] };
    const filters = [
      waits,
      { agents: ['a'], not: waits },
      {
        waitingReasons: ['DEPENDENCY', 'NOT_BEFORE'],
        not: { steps: ['other'], waitingReasons: ['NOT_BEFORE', 'REQUEST_RATE'] },
      },
    ];
    for (const filter of filters) {
      await read.counts.ofTasks(filter);
      await plane.services.actions.retryTasks({ filter, dryRun: true }, actor);
      await plane.services.actions.cancelTasks({ filter, dryRun: true }, actor);
    }
    expect(plans.length).toBeGreaterThan(5);
    expect(plans.flatMap((plan) => manyRows(plan, 100_000))).toEqual([]);
    await plane.stop();
  },
);
