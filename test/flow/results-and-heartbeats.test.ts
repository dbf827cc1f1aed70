import pg from 'pg';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import type { ResultRecorder } from '../../src/result/results.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { decidingRecorder } from '../support/silent-observer.ts';

let plane: ControlPlane;
/** A transaction that locks leases and tells progress, as heartbeats do. */
let heartbeat: pg.Client;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  heartbeat = new pg.Client({ connectionString: plane.database.url });
  await heartbeat.connect();
  await heartbeat.query('begin');
  return async () => {
    await heartbeat.end();
    await plane.stop();
  };
});

const complete = (results: ResultRecorder, assignments: readonly Assignment[]) =>
  results.reportResults(
    assignments.map((one) => ({ ...plane.credentials(one), status: 'COMPLETED', output: 1 })),
  );

describe.each([
  ['by the statement alone', () => plane.services.results],
  ['when they are decided one by one', () => decidingRecorder(plane)],
])('results that come while a heartbeat is under way, %s', (_, results) => {
  test('lock leases by their ids as heartbeats do, wherever their rows are', async () => {
    for (let i = 0; i < 2; i++) await plane.launch('one');
    const assignments = await plane.claim(['a']);
    const [first, second] = assignments.map(({ attemptId }) => attemptId).sort();
    await plane.rows(
      `with moved as (delete from runplane.leases where attempt_id = $1 returning *)
       insert into runplane.leases select * from moved`,
      [first],
    );
    const lock = 'select from runplane.leases where attempt_id = $1 for update';
    // Of those that wait in a circle the first to look is ended.
    await heartbeat.query(`set local deadlock_timeout = '1ms'`);
    await heartbeat.query(lock, [first]);
    const completing = complete(results(), assignments);
    await plane.untilBlocked(1);
    await heartbeat.query(lock, [second]);
    await heartbeat.query('commit');
    expect(await completing).toMatchObject([{ outcome: 'APPLIED' }, { outcome: 'APPLIED' }]);
  });

  test('leave nothing of the progress that it tells', async () => {
    await plane.launch('one');
    const assignments = await plane.claim(['a']);
    await heartbeat.query('select from runplane.leases for update');
    const completing = complete(results(), assignments);
    await plane.untilBlocked(1);
    await heartbeat.query(
      'insert into runplane.task_progress (task_id, progress) select l.task_id, 0.5 from runplane.leases l',
    );
    await heartbeat.query('commit');
    expect(await completing).toMatchObject([{ outcome: 'APPLIED' }]);
    expect(await plane.rows('select from runplane.task_progress')).toEqual([]);
  });

  test('learn from the usage that it tells', async () => {
    await plane.services.configuration.saveThrottle({ name: 'model', maxTokensPerMinute: 10_000 }, actor);
    await plane.agent('a', { throttles: ['model'] });
    await plane.launch('one');
    const assignments = await plane.claim(['a']);
    await heartbeat.query('select from runplane.leases for update');
    const completing = complete(results(), assignments);
    await plane.untilBlocked(1);
    await heartbeat.query(
      `select runplane.book_usage(json_build_array(json_build_object(
         'attempt_id', l.attempt_id, 'inputTokens', 70, 'requests', 1))) from runplane.leases l`,
    );
    await heartbeat.query('commit');
    expect(await completing).toMatchObject([{ outcome: 'APPLIED' }]);
    expect(await plane.rows('select tokens from runplane.settled_attempts')).toEqual([{ tokens: 70 }]);
  });
});
