import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Changes } from '../../src/changelog/types.ts';
import { limits } from '../../src/domain/limits.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
});
afterEach(() => plane.stop());

const tasks = (filter = {}, after: string | null = null) =>
  plane.services.changeLog.taskChanges(filter, after);
async function read(stream: AsyncIterator<Changes<{ runId: string }>>, count: number): Promise<string[]> {
  const runIds: string[] = [];
  while (runIds.length < count) {
    const { done, value } = await stream.next();
    if (done) throw new Error('the stream is over');
    runIds.push(...value.changes.map(({ runId }) => runId));
  }
  return runIds;
}

test('a reading that has to be repeated, since a table is locked for longer than is waited, still reads for everybody', async () => {
  await plane.job('one', ['a']);
  const run = await plane.launch('one');
  const streams = [tasks(), tasks({ runIds: [run] })];
  for (const stream of streams) await stream.next();
  const locker = new pg.Client({ connectionString: plane.database.url });
  await locker.connect();
  await locker.query('begin');
  await locker.query('lock table runplane.jobs in access exclusive mode');
  const seen = Promise.all(streams.map((stream) => read(stream, 1)));
  await plane.claim(['a']);
  // Whoever waits gives up in the end, and tries again: then it may go on.
  const waiting = `select a.xact_start::text as since from pg_locks l join pg_stat_activity a on a.pid = l.pid
                    where not l.granted and l.relation = 'runplane.jobs'::regclass and a.query like '%(select pg_current_snapshot() as now)%'`;
  const attempts = new Set<string>();
  await expect
    .poll(
      async () => {
        for (const { since } of await plane.rows<{ since: string }>(waiting)) attempts.add(since);
        return attempts.size;
      },
      { timeout: 20_000 },
    )
    .toBeGreaterThan(1);
  await locker.query('commit');
  await locker.end();
  expect(await seen).toEqual([[run], [run]]);
  for (const stream of streams) await stream.return?.();
});

test('a stream that is not read keeps no more than a buffer holds, however large the labels of what changes are', async () => {
  await plane.job('one', ['a']);
  const stream = tasks();
  await stream.next();
  expect(plane.services.kept()).toMatchObject({ subscribers: 1 });
  const labels = Array.from({ length: limits.labels }, (_, i) => ({
    key: `key ${i}`,
    value: 'x'.repeat(limits.labelValueBytes),
  }));
  const total = 60;
  const bytes = total * labels.length * limits.labelValueBytes;
  expect(total).toBeLessThan(limits.streamBufferEvents);
  expect(bytes).toBeGreaterThan(limits.streamBufferBytes);
  const launched = await plane.services.intake.launchRuns(
    Array.from({ length: total }, () => ({ job: 'one', labels })),
  );
  // It is told nothing any more, and reads the log when it goes on.
  await expect.poll(() => plane.services.kept()).toMatchObject({ subscribers: 0 });
  const runIds = launched.map((one) => (one.kind === 'LaunchRunSuccess' ? one.runId : one.kind));
  expect((await read(stream, total)).toSorted()).toEqual(runIds.toSorted());
  await stream.return?.();
});

test('what became of a task that is deleted while its run is still there is told without names', async () => {
  await plane.job('two', ['a', { name: 'other', agent: 'a' }]);
  const after = await plane.services.changeLog.currentCursor();
  const run = await plane.launch('two');
  for (const task of await plane.claim(['a'])) await plane.report(task, { status: 'COMPLETED' });
  // As retention does with a run that has more tasks than it deletes at once.
  await plane.rows(
    `with gone as (delete from runplane.tasks where run_id = $1 and step = 'other' returning id),
          attempts as (delete from runplane.attempts where task_id in (select id from gone))
     update runplane.runs set total_tasks = total_tasks - 1 where id = $1`,
    [run],
  );
  const page = await plane.services.changeLog.taskChangePage({}, { after, first: 50, waitMs: 0 });
  const names = page.changes.map(({ step, agent }) => `${step} of ${agent}`);
  expect(names.toSorted()).toEqual([...Array(3).fill(' of '), ...Array(3).fill('a of a')]);
});
