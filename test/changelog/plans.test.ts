import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Changes, TaskChange } from '../../src/changelog/types.ts';
import {
  deleteOldEvents,
  findRunsOfOldEvents,
} from '../../src/housekeeping/retention/delete-attempt-events.sql.ts';
import { createRead } from '../../src/read/read.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { createTestDatabase } from '../support/database.ts';
import { readyTasks } from '../support/many-tasks.sql.ts';
import { collectPlans, firstColumns, fullReads, type ShownPlan, showPlans } from '../support/plans.ts';

/** Tables of which there is much here. */
const large = new Set(['attempt_events', 'attempt_event_counts', 'change_log']);
const runs = 300;
const eventsARun = 200;

let plans: ShownPlan[] = [];
let plane: ControlPlane;

// Behind a pooler nothing is prepared, and no plan outlives what it was made for.
describe.skipIf(process.env.TEST_POOLER_URL !== undefined)('however much others told', () => {
  beforeAll(async () => {
    const database = await createTestDatabase();
    await showPlans(database);
    plane = await ControlPlane.start({ database });
    plans = collectPlans(plane);
    await plane.agent('a');
    await plane.job('one', ['a']);
    await plane.services.intake.launchRuns(Array.from({ length: runs }, () => ({ job: 'one' })));
    for (let left = runs; left > 0; left -= 100) await plane.claim(['a'], 100);
    await plane.rows(`
    insert into runplane.attempt_events (run_id, task_id, attempt_id, sequence, type, at, data, bytes)
    select l.run_id, l.task_id, l.attempt_id, s.n, 'log', runplane.clock(), to_jsonb(repeat('x', 100)), 105
      from runplane.leases l cross join generate_series(1, ${eventsARun}) s(n)`);
    await plane.rows(`
    insert into runplane.attempt_event_counts (attempt_id, last_sequence, bytes)
    select l.attempt_id, ${eventsARun}, ${eventsARun * 105} from runplane.leases l`);
    await plane.rows('vacuum analyze');
  });
  // Without the invariants, which read everything: that is for smaller tests.
  afterAll(async () => {
    await plane.services.stop();
    await plane.database.drop();
  });

  test('appends, streams, pages and lists find what they read by key', async () => {
    const { changeLog } = plane.services;
    const start = await changeLog.currentCursor();
    const [task] = await plane.rows<{ attemptId: string; taskId: string; runId: string }>(
      'select attempt_id as "attemptId", task_id as "taskId", run_id as "runId" from runplane.leases limit 1',
    );
    if (!task) throw new Error('nothing is executed');
    plans.length = 0;
    for (const of of [{ runId: task.runId }, { taskId: task.taskId }, { attemptId: task.attemptId }]) {
      // Often enough that plans are kept.
      for (let repeat = 0; repeat < 8; repeat++) {
        const stream = await changeLog.attemptEvents(of, start);
        await stream.next();
        await plane.tell(task, [{ type: 'log', data: 'live' }]);
        await stream.next();
        await stream.return?.();
      }
    }
    for (let repeat = 0; repeat < 8; repeat++)
      await changeLog.taskChangePage({}, { after: start, first: 10, waitMs: 0 });
    const read = createRead(plane.services.db);
    await read.attemptEvents.ofAttempts([task.attemptId], { first: 10 });
    await findRunsOfOldEvents(plane.services.db, 1, null);
    await deleteOldEvents(plane.services.db, 1, [task.runId]);
    const seen = plans.map(({ query }) => query).join('\n');
    for (const part of [
      'e.run_id = any($2)',
      'e.run_id = $6',
      'e.task_id = $6',
      'insert into runplane.attempt_events',
      'delete from runplane.attempt_events',
      'with recursive',
      'x.sequence asc',
    ])
      expect(seen).toContain(part);
    const columns = await firstColumns(plane.database);
    expect([...new Set(plans.flatMap((plan) => fullReads(plan, large, columns)))]).toEqual([]);
  });
});

/** Plans are kept, so it counts how they were made: in a new installation, or one whose past was deleted. */
describe.skipIf(process.env.TEST_POOLER_URL !== undefined)('planned while nothing was there', () => {
  let plans: ShownPlan[] = [];
  let plane: ControlPlane;

  beforeAll(async () => {
    const database = await createTestDatabase();
    await showPlans(database);
    plane = await ControlPlane.start({ database });
    plans = collectPlans(plane);
    await plane.agent('a');
    await plane.job('a', ['a']);
    await plane.rows('vacuum analyze');
  });
  afterAll(async () => {
    await plane.services.stop();
    await plane.database.drop();
  });

  test('streams and pages look up what their entries are about, and find these by their place in the log', async () => {
    const { changeLog, signal } = plane.services;
    const start = await changeLog.currentCursor();
    const readAll = async (): Promise<void> => {
      await changeLog.taskChangePage({}, { after: start, first: 200, waitMs: 0 });
      const stream = changeLog.taskChanges({}, start);
      await stream.next();
      const runId = await plane.launch('a');
      let seen: string[] = [];
      while (!seen.includes(runId)) {
        const { changes } = (await stream.next()).value as Changes<TaskChange>;
        seen = changes.map((change) => change.runId);
      }
      await stream.return?.();
      const events = await changeLog.attemptEvents({ runId }, start);
      await events.next();
      signal.changed('attemptEvents');
      await events.return?.();
      const [task] = await plane.rows<{ id: string }>('select id from runplane.tasks where run_id = $1', [
        runId,
      ]);
      const ofTask = await changeLog.attemptEvents({ taskId: task?.id ?? '' }, start);
      await ofTask.next();
      signal.changed('attemptEvents');
      await ofTask.return?.();
    };
    for (let repeat = 0; repeat < 8; repeat++) await readAll();
    for (const statement of readyTasks({ agents: ['a'], count: 2_000, priority: 0 }))
      await plane.rows(statement);
    plans.length = 0;
    for (let repeat = 0; repeat < 3; repeat++) await readAll();
    const seen = plans.map(({ query }) => query).join('\n');
    for (const part of ['s.log_end::text as end, x.* from snapshot', 'e.run_id = $6', 'log_deleted_xid'])
      expect(seen).toContain(part);
    const read = new Set(['runs', 'tasks', 'change_log', 'attempt_events']);
    const ofTheLog = plans.filter(({ query }) => query.includes('pg_visible_in_snapshot'));
    const columns = await firstColumns(plane.database);
    expect([...new Set(ofTheLog.flatMap((plan) => fullReads(plan, read, columns)))]).toEqual([]);
  });
});
