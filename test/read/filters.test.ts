import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRead, type Read } from '../../src/read/read.ts';
import type { RunFilter } from '../../src/read/run-filter.ts';
import type { TaskFilter } from '../../src/read/task-filter.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
let read: Read;
/** What each task is called here: its run's idempotency key and its step. */
let names: Map<string, string>;

const label = (key: string, value: string) => ({ key, value });

beforeAll(async () => {
  plane = await ControlPlane.start();
  read = createRead(plane.database.db);
  await plane.services.configuration.saveQueue({ name: 'slow', pool: 'core' }, actor);
  await plane.agent('a');
  await plane.agent('b', { queue: 'slow' });
  await plane.job('one', ['a']);
  await plane.job('two', ['a', { name: 'b', agent: 'b', dependsOn: ['a'] }]);
  await plane.launch('one', {
    idempotencyKey: 'x',
    customer: 'c1',
    labels: [label('env', 'prod'), label('team', 'red')],
  });
  await plane.launch('two', {
    idempotencyKey: 'y',
    customer: 'c2',
    labels: [label('env', 'test')],
    correlationId: 'corr',
  });
  await plane.launch('one', { idempotencyKey: 'z' });
  const [x, y] = await plane.claim(['a'], 2);
  if (!x || !y) throw new Error('nothing to claim');
  await plane.report(x, { status: 'FAILED', error: { code: 'E1', message: 'no', kind: 'PERMANENT' } });
  const rows = await plane.rows<{ id: string; name: string }>(
    `select t.id, r.idempotency_key || '/' || t.step as name from runplane.tasks t join runplane.runs r on r.id = t.run_id`,
  );
  names = new Map(rows.map(({ id, name }) => [id, name]));
});
afterAll(() => plane.stop());

const tasks = async (filter: TaskFilter): Promise<string> =>
  (await read.tasks.list(filter, 'CREATED_ASC', {})).edges.map(({ node }) => names.get(node.id)).join(' ');
const all = 'x/a y/a y/b z/a';

test.each<[TaskFilter, string]>([
  [{}, all],
  [{ ids: null, statuses: null, labels: null, not: null }, all],
  [{ ids: [] }, ''],
  [{ statuses: [] }, ''],
  [{ labels: [] }, ''],
  [{ anyLabels: [] }, ''],
  [{ statuses: ['FAILED'] }, 'x/a'],
  [{ statuses: ['PROCESSING'] }, 'y/a'],
  [{ statuses: ['ENQUEUED'] }, 'z/a'],
  [{ statuses: ['BLOCKED', 'FAILED'] }, 'x/a y/b'],
  [{ jobs: ['one'] }, 'x/a z/a'],
  [{ steps: ['b'] }, 'y/b'],
  [{ agents: ['a'], jobs: ['two'] }, 'y/a'],
  [{ queues: ['slow'] }, 'y/b'],
  [{ customers: ['c1', 'c2'] }, 'x/a y/a y/b'],
  [{ correlationId: 'corr' }, 'y/a y/b'],
  [{ errorCodes: ['E1'] }, 'x/a'],
  [{ labels: [{ key: 'env', values: ['prod', 'test'] }] }, 'x/a y/a y/b'],
  [{ labels: [{ key: 'env' }, { key: 'team' }] }, 'x/a'],
  [{ labels: [{ key: 'env', values: [] }] }, ''],
  [{ anyLabels: [{ key: 'team' }, { key: 'env', values: ['test'] }] }, 'x/a y/a y/b'],
  [{ not: { customers: ['c1'] } }, 'y/a y/b z/a'],
  [{ not: {} }, ''],
  [{ statuses: ['ENQUEUED', 'BLOCKED', 'FAILED'], not: { jobs: ['one'], statuses: ['FAILED'] } }, 'y/b z/a'],
])('tasks of %j', async (filter, expected) => {
  expect(await tasks(filter)).toBe(expected);
  const counts = await read.counts.ofTasks(filter);
  expect(Object.values(counts).reduce((sum, n) => sum + n, 0)).toBe(
    expected === '' ? 0 : expected.split(' ').length,
  );
});

test('after is inclusive, before exclusive', async () => {
  const [row] = await plane.rows<{ at: Date }>(
    `select finished_at as at from runplane.tasks where state = 'FAILED'`,
  );
  const at = row?.at ?? new Date();
  expect(await tasks({ finishedAfter: at })).toBe('x/a');
  expect(await tasks({ finishedBefore: at })).toBe('');
  expect(await tasks({ finishedBefore: new Date(at.getTime() + 1) })).toBe('x/a');
  expect(await tasks({ createdAfter: new Date(0), createdBefore: new Date(Date.now() + 60_000) })).toBe(all);
});

test.each<[RunFilter, string]>([
  [{}, 'z y x'],
  [{ idempotencyKeys: ['x', 'z', 'none'] }, 'z x'],
  [{ statuses: ['FAILED'] }, 'x'],
  [{ statuses: ['QUEUED', 'RUNNING'] }, 'z y'],
  [{ jobs: ['two'], customers: ['c1'] }, ''],
  [{ labels: [{ key: 'team', values: ['red'] }] }, 'x'],
  [{ anyLabels: [] }, ''],
])('runs of %j', async (filter, expected) => {
  const { edges } = await read.runs.list(filter, {});
  expect(edges.map(({ node }) => node.idempotencyKey).join(' ')).toBe(expected);
});

test('counts by status', async () => {
  const zero = { blocked: 0, enqueued: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 };
  expect(await read.counts.ofTasks({})).toEqual({
    ...zero,
    blocked: 1,
    enqueued: 1,
    processing: 1,
    failed: 1,
  });
  const { edges } = await read.runs.list({ idempotencyKeys: ['y'] }, {});
  const id = edges[0]?.node.id ?? '';
  expect((await read.counts.ofRuns([id])).get(id)).toEqual({ id, ...zero, blocked: 1, processing: 1 });
});

test('dead letters by what failed', async () => {
  const codes = async (filter: object) =>
    (await read.deadLetters.list(filter, {})).edges.map(({ node }) => node.errorCode);
  expect(await codes({ errorCodes: ['E1'], jobs: ['one'], agents: ['a'], replayed: false })).toEqual(['E1']);
  expect(await codes({ replayed: true })).toEqual([]);
  expect(await codes({ queues: ['slow'] })).toEqual([]);
});
