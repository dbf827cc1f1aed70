import { afterEach, expect, test } from 'vitest';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
afterEach(() => plane.stop());

test('a server that stops hands back what no handler has begun; only what was done is completed', async () => {
  let calls = 0;
  let slow = false;
  plane = await ControlPlane.start({
    scheduler: true,
    handlers: {
      h: async (_, signal) => {
        calls++;
        if (slow)
          await new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(new Error('stopped'))),
          );
        return {};
      },
    },
  });
  await plane.agent('a', { dispatch: { inline: { handler: 'h' } } });
  await plane.job('one', ['a']);
  const after = await plane.services.changeLog.currentCursor();
  // Quick tasks make the pool claim ahead; then the handlers stall with claimed tasks behind them.
  await plane.services.intake.launchRuns(Array.from({ length: 300 }, () => ({ job: 'one' })));
  let done = 0;
  for await (const { changes } of plane.services.changeLog.runChanges({ statuses: ['COMPLETED'] }, after)) {
    done += changes.length;
    if (done >= 300) break;
  }
  slow = true;
  await plane.services.intake.launchRuns(Array.from({ length: 200 }, () => ({ job: 'one' })));
  const leases = () => plane.rows('select attempt_id from runplane.leases');
  await expect.poll(async () => (await leases()).length, { timeout: 10_000 }).toBeGreaterThan(8);
  await plane.services.drain();
  const [completed] = await plane.rows<{ n: number }>(
    `select count(*)::int as n from runplane.tasks where state = 'COMPLETED'`,
  );
  expect(completed?.n).toBeLessThanOrEqual(calls);
  expect(await plane.rows('select attempt_id from runplane.leases')).toEqual([]);
  expect(
    await plane.rows(`select distinct status from runplane.attempts where status <> 'COMPLETED'`),
  ).toEqual([{ status: 'RELEASED' }]);
});

test('cancels race with the ends of the heads of their serial keys', async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  const by = { name: 'test', requestId: null };
  for (let round = 0; round < 15; round++) {
    await plane.launch('one', { serialKey: 'k' });
    const behind = await plane.launch('one', { serialKey: 'k' });
    const [head] = await plane.claim(['a']);
    await Promise.all([
      plane.report(head as never, { status: 'COMPLETED' }),
      plane.services.actions.cancelRun({ runId: behind }, by),
    ]);
    expect(await plane.claim(['a'])).toEqual([]);
  }
});

test('a stream of named runs completes although its reader fell behind', async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  const runIds = await Promise.all(Array.from({ length: 300 }, () => plane.launch('one')));
  const stream = plane.services.changeLog.taskChanges({ runIds }, null);
  await stream.next();
  for (let claimed = await plane.claim(['a']); claimed.length > 0; claimed = await plane.claim(['a'])) {
    await plane.services.results.reportResults(
      claimed.map((task) => ({ ...plane.credentials(task), status: 'COMPLETED' as const })),
    );
  }
  const seen = new Set<string>();
  for await (const { changes } of stream)
    for (const { taskId, toStatus } of changes) if (toStatus === 'COMPLETED') seen.add(taskId);
  expect(seen.size).toBe(300);
});
