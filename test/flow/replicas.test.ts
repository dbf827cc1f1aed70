import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ChangeLog } from '../../src/changelog/types.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { type Process, startReplica } from '../support/processes.ts';
import { count } from '../support/tier.ts';

let plane: ControlPlane;
let replicas: Process[] = [];
beforeEach(async () => {
  plane = await ControlPlane.start();
});
afterEach(async () => {
  await Promise.all(replicas.map((replica) => replica.end('SIGKILL')));
  replicas = [];
  await plane.stop();
});

async function launchMany(job: string, n: number, ms: number): Promise<string> {
  const cursor = await plane.services.changeLog.currentCursor();
  for (let at = 0; at < n; at += 500) {
    const outcomes = await plane.services.intake.launchRuns(
      Array.from({ length: Math.min(500, n - at) }, (_, i) => ({ job, config: { i, ms } })),
    );
    expect(outcomes.every((outcome) => outcome.kind === 'LaunchRunSuccess')).toBe(true);
  }
  return cursor;
}

/** Reads the change log until so many runs are terminal; answers their statuses. */
async function untilTerminal(changeLog: ChangeLog, after: string, n: number): Promise<Map<string, string>> {
  const ended = new Map<string, string>();
  for await (const { changes } of changeLog.runChanges(
    { statuses: ['COMPLETED', 'FAILED', 'CANCELLED'] },
    after,
  )) {
    for (const change of changes) ended.set(change.runId, change.toStatus);
    if (ended.size >= n) break;
  }
  return ended;
}

/** The replica, standing still while it holds leases. */
async function stopWithLeases(replica: Process | undefined): Promise<Process> {
  if (!replica) throw new Error('there is no such replica');
  await expect
    .poll(
      async () => {
        replica.child.kill('SIGSTOP');
        const held = await plane.rows(
          'select from runplane.leases l join runplane.workers w on w.id = l.worker_id where w.name = $1',
          [`replica-${replica.child.pid}`],
        );
        if (held.length === 0) replica.child.kill('SIGCONT');
        return held.length;
      },
      { timeout: 10_000 },
    )
    .toBeGreaterThan(0);
  return replica;
}

test('two replicas never exceed a limit that they share, and use it', async () => {
  const n = count({ test: 300, soak: 5000 });
  await plane.services.configuration.saveThrottle(
    { name: 'model', maxConcurrentTasks: 4 },
    { name: 'test', requestId: null },
  );
  await plane.agent('a', { dispatch: { inline: { handler: 'work' } }, throttles: ['model'] });
  await plane.agent('b', {
    dispatch: { inline: { handler: 'work' } },
    throttles: ['model'],
    maxConcurrentTasks: 3,
  });
  await plane.job('two', [
    { name: 'a', agent: 'a' },
    { name: 'b', agent: 'b' },
  ]);
  replicas = await Promise.all([startReplica(plane.database.url), startReplica(plane.database.url)]);
  const after = await launchMany('two', n / 2, 3);

  let most = 0;
  let observing = true;
  const observer = (async () => {
    for (let looks = 0; observing; looks++) {
      const [use] = await plane.rows<{ all: number; b: number }>(
        `select count(*)::int as all, count(*) filter (where a.name = 'b')::int as b from runplane.leases l join runplane.agents a on a.id = l.agent_id`,
      );
      expect(use?.all).toBeLessThanOrEqual(4);
      expect(use?.b).toBeLessThanOrEqual(3);
      most = Math.max(most, use?.all ?? 0);
    }
  })();
  const ended = await untilTerminal(plane.services.changeLog, after, n / 2);
  observing = false;
  await observer;
  expect(new Set(ended.values())).toEqual(new Set(['COMPLETED']));
  expect(most).toBe(4);
  const workers = await plane.rows('select distinct worker_id from runplane.attempts');
  expect(workers).toHaveLength(2);
});

test('a replica that is killed in the middle loses nothing and repeats nothing that was reported', async () => {
  const n = count({ test: 500, soak: 5000 });
  await plane.agent('a', { dispatch: { inline: { handler: 'work' } }, leaseSeconds: 5 });
  await plane.job('one', ['a']);
  replicas = await Promise.all([startReplica(plane.database.url), startReplica(plane.database.url)]);
  const after = await launchMany('one', n, 50);
  await untilTerminal(plane.services.changeLog, after, n / 10);
  const victim = await stopWithLeases(replicas[0]);
  await victim.end('SIGKILL');
  const ended = await untilTerminal(plane.services.changeLog, after, n);
  expect(new Set(ended.values())).toEqual(new Set(['COMPLETED']));
  expect(ended.size).toBe(n);
  const lost = await plane.rows(`select id from runplane.attempts where status = 'LOST'`);
  expect(lost.length).toBeGreaterThan(0);
  const completed = await plane.rows(`select task_id from runplane.attempts where status = 'COMPLETED'`);
  expect(new Set(completed.map((row) => (row as { task_id: string }).task_id)).size).toBe(completed.length);
});

test('a replica that stands still until its leases are lost repeats nothing when it goes on, and works again', async () => {
  const n = 200;
  await plane.agent('a', { dispatch: { inline: { handler: 'work' } }, leaseSeconds: 5 });
  await plane.job('one', ['a']);
  replicas = await Promise.all([startReplica(plane.database.url), startReplica(plane.database.url)]);
  const after = await launchMany('one', n, 300);
  const victim = await stopWithLeases(replicas[0]);
  const ended = await untilTerminal(plane.services.changeLog, after, n);
  expect(new Set(ended.values())).toEqual(new Set(['COMPLETED']));
  const lost = await plane.rows<{ id: string }>(`select id from runplane.attempts where status = 'LOST'`);
  expect(lost.length).toBeGreaterThan(0);
  const outputs = 'select id, output from runplane.tasks order by id';
  const before = await plane.rows(outputs);

  victim.child.kill('SIGCONT');
  // It reports what it had begun.
  const late = 'select id from runplane.attempts where status = $1 and result_digest is not null';
  await expect.poll(() => plane.rows(late, ['LOST']), { timeout: 20_000 }).not.toEqual([]);
  await replicas[1]?.end('SIGTERM');
  await launchMany('one', 20, 5);
  const unfinished = 'select id from runplane.runs where finished_at is null';
  await expect.poll(() => plane.rows(unfinished), { timeout: 30_000 }).toEqual([]);
  expect((await plane.rows(outputs)).slice(0, n)).toEqual(before);
}, 90_000);

test('a replica that is stopped hands its work back at once, and spends no attempt', async () => {
  await plane.agent('a', { dispatch: { inline: { handler: 'work' } } });
  await plane.job('one', ['a']);
  replicas = [await startReplica(plane.database.url)];
  const after = await launchMany('one', 20, 60_000);
  for await (const { changes } of plane.services.changeLog.taskChanges({ statuses: ['PROCESSING'] }, after))
    if (changes.length > 0) break;
  expect(await replicas[0]?.end('SIGTERM')).toBe(0);
  expect(await plane.rows('select attempt_id from runplane.leases')).toEqual([]);
  const attempts = await plane.rows<{ status: string; counted: boolean }>(
    'select distinct status, counted from runplane.attempts',
  );
  expect(attempts).toEqual([{ status: 'RELEASED', counted: false }]);
});
