import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import { createSweeper } from '../../src/scheduler/sweeper.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a', { leaseSeconds: 10 });
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

/** Three attempts, of which the database refuses every change of the second one's run. */
async function withOnePoisoned(): Promise<[Assignment, Assignment, Assignment]> {
  for (let i = 0; i < 3; i++) await plane.launch('one');
  const attempts = await plane.claim(['a']);
  await plane.rows(
    `create function runplane.refuse() returns trigger language plpgsql as $$ begin raise exception 'poison'; end $$`,
  );
  await plane.rows(
    `create trigger poison before update on runplane.runs for each row when (old.id = '${attempts[1]?.runId}') execute function runplane.refuse()`,
  );
  return attempts as [Assignment, Assignment, Assignment];
}
const cure = () => plane.rows('drop trigger poison on runplane.runs');
const statuses = async (attempts: Assignment[]) =>
  Promise.all(attempts.map(async ({ runId }) => (await plane.run(runId)).status));

test.each([
  ['completions', { status: 'COMPLETED', output: 1 }],
  ['failures', { status: 'FAILED', error: { code: 'NO', kind: 'PERMANENT' } }],
] as const)(
  'of %s that come together, one that cannot be recorded keeps no other from it',
  async (_, result) => {
    const attempts = await withOnePoisoned();
    const reports = await Promise.allSettled(attempts.map((attempt) => plane.report(attempt, result)));
    expect(reports.map((report) => report.status === 'fulfilled' && report.value)).toEqual([
      expect.objectContaining({ outcome: 'APPLIED', taskStatus: result.status }),
      false,
      expect.objectContaining({ outcome: 'APPLIED', taskStatus: result.status }),
    ]);
    expect(await statuses(attempts)).toEqual([result.status, 'RUNNING', result.status]);
    await cure();
    expect(await plane.report(attempts[1], result)).toMatchObject({ outcome: 'APPLIED' });
  },
);

test('one attempt that cannot be swept keeps no other from it, and is swept when it can be', async () => {
  const attempts = await withOnePoisoned();
  for (const attempt of attempts) {
    await plane.services.actions.cancelTask({ taskId: attempt.taskId }, { name: 'test', requestId: null });
  }
  await plane.rows(`update runplane.leases set timeout_at = runplane.clock() - interval '1 s'`);
  const failures: unknown[] = [];
  const sweeper = createSweeper({
    db: plane.database.db,
    results: plane.services.results,
    onError: (error) => failures.push(error),
  });
  const leased = async () =>
    (await plane.rows<{ id: string }>('select attempt_id as id from runplane.leases')).map(({ id }) => id);
  sweeper.start();
  await expect.poll(leased, { timeout: 20_000 }).toEqual([attempts[1].attemptId]);
  // For longer than a sweeper has to be away for leases to be spared.
  await expect.poll(() => failures.length, { timeout: 20_000 }).toBeGreaterThan(7);
  expect(String(failures[0])).toContain('poison');
  expect(await statuses(attempts)).toEqual(['CANCELLED', 'RUNNING', 'CANCELLED']);
  await plane.launch('one');
  const [late] = await plane.claim(['a']);
  if (late) await plane.expire(late);
  await expect.poll(leased, { timeout: 10_000 }).toEqual([attempts[1].attemptId]);
  await cure();
  await expect.poll(leased, { timeout: 20_000 }).toEqual([]);
  await sweeper.stop();
  expect(await statuses(attempts)).toEqual(['CANCELLED', 'CANCELLED', 'CANCELLED']);
});
