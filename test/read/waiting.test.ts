import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRead, type Read } from '../../src/read/read.ts';
import { at, setClockAhead, stopClock } from '../support/clock.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { waitingOf } from '../support/waiting.ts';

let plane: ControlPlane;
let read: Read;

beforeEach(async () => {
  plane = await ControlPlane.start();
  read = createRead(plane.database.db);
});
afterEach(() => plane.stop());

const taskOf = async (runId: string, step = 'a'): Promise<string> => {
  const [task] = await plane.rows<{ id: string }>(
    'select id from runplane.tasks where run_id = $1 and step = $2',
    [runId, step],
  );
  return task?.id ?? '';
};
const reasonOf = async (runId: string, step = 'a') => {
  const id = await taskOf(runId, step);
  return (await waitingOf(plane.database.db, id)) ?? null;
};
/** A worker is heard of, and takes what there is. */
const work = (limit = 1) => plane.claim(['a'], limit);

test('tells for each task the first reason that holds', async () => {
  await plane.agent('a', { maxConcurrentTasks: 1 });
  await plane.job('one', ['a', { name: 'b', agent: 'a', dependsOn: ['a'] }]);
  const first = await plane.launch('one');
  expect(await reasonOf(first)).toMatchObject({ reason: 'NO_WORKER', until: null });
  const [task] = await work();
  expect(await reasonOf(first)).toBeNull();
  expect(await reasonOf(first, 'b')).toMatchObject({ reason: 'DEPENDENCY', detail: 'It waits for: a.' });

  const second = await plane.launch('one');
  expect(await reasonOf(second)).toMatchObject({
    reason: 'CONCURRENCY_LIMIT',
    detail: 'Agent a runs 1 of 1 tasks.',
  });
  await plane.services.configuration.pauseAgent({ name: 'a' }, actor);
  expect(await reasonOf(second)).toMatchObject({ reason: 'AGENT_PAUSED' });
  await plane.services.configuration.pauseQueue({ name: 'default' }, actor);
  expect(await reasonOf(second)).toMatchObject({
    reason: 'QUEUE_PAUSED',
    detail: 'Queue default is paused.',
  });
  await plane.services.configuration.resumeQueue({ name: 'default' }, actor);
  await plane.services.configuration.resumeAgent({ name: 'a' }, actor);
  if (task) await plane.report(task, { status: 'COMPLETED' });
  expect(await reasonOf(second)).toMatchObject({ reason: 'BEHIND_OTHERS' });
  expect(await reasonOf(first)).toBeNull();
});

test('tells of the task that is claimed next that it is, and how long ago a worker asked', async () => {
  await plane.agent('a');
  await plane.job('one', ['a']);
  await stopClock(plane.database.db, at(0));
  await work();
  await stopClock(plane.database.db, at(7));
  const [next, other] = [await plane.launch('one'), await plane.launch('one')];
  const reason = 'BEHIND_OTHERS';
  expect(await reasonOf(next)).toMatchObject({
    reason,
    detail: 'It is the next task of agent a; a worker asked for such 7 s ago.',
  });
  expect(await reasonOf(other)).toMatchObject({
    reason,
    detail: 'It is its turn after the tasks before it.',
  });
  const urgent = await plane.launch('one', { priority: 1 });
  expect((await reasonOf(urgent))?.detail).toContain('next task');
  expect((await reasonOf(next))?.detail).not.toContain('next task');
});

test('tells of an inline agent without a server that none has its handler', async () => {
  await plane.agent('a', { dispatch: { inline: { handler: 'nowhere' } } });
  await plane.job('one', ['a']);
  expect(await reasonOf(await plane.launch('one'))).toMatchObject({
    reason: 'NO_WORKER',
    detail: 'No live server has the handler of agent a.',
  });
});

test('tells until when a task was put off', async () => {
  await plane.agent('a', { retryPolicy: { backoff: 'FIXED', initialDelaySeconds: 100, jitter: 0 } });
  await plane.job('one', ['a']);
  const availableAt = new Date(Date.now() + 3_600_000);
  const later = await plane.launch('one', { availableAt });
  expect(await reasonOf(later)).toMatchObject({ reason: 'NOT_BEFORE', until: availableAt });

  const failing = await plane.launch('one');
  const [task] = await work();
  if (task) await plane.report(task, { status: 'FAILED', error: { code: 'E', message: 'no' } });
  const waiting = await reasonOf(failing);
  expect(waiting?.reason).toBe('RETRY_BACKOFF');
  expect((waiting?.until?.getTime() ?? 0) - (waiting?.since.getTime() ?? 0)).toBe(100_000);
});

test('names the throttle that is full, and the one that its provider holds back', async () => {
  await plane.services.configuration.saveThrottle({ name: 'api', maxConcurrentTasks: 1 }, actor);
  await plane.agent('a', { throttles: ['api'] });
  await plane.agent('b', { throttles: ['api'] });
  await plane.job('one', ['a']);
  await plane.job('other', ['b']);
  await plane.launch('other');
  const [task] = await plane.claim(['b']);
  const run = await plane.launch('one');
  expect(await reasonOf(run)).toMatchObject({
    reason: 'CONCURRENCY_LIMIT',
    detail: 'Throttle api has 1 of 1 tasks.',
  });
  if (!task) throw new Error('nothing to claim');
  const error = { code: '429', message: 'slow down', kind: 'RATE_LIMITED', retryAfterSeconds: 60 } as const;
  await plane.report(task, { status: 'FAILED', error });
  const waiting = await reasonOf(run);
  expect(waiting).toMatchObject({ reason: 'PROVIDER_BACKOFF' });
  expect(waiting?.until?.getTime()).toBeGreaterThan(Date.now() + 50_000);
});

test('of two throttles that are held back tells the one that is held back longest', async () => {
  for (const name of ['first', 'second']) await plane.services.configuration.saveThrottle({ name }, actor);
  await plane.agent('a', { throttles: ['first', 'second'] });
  await plane.job('one', ['a']);
  await stopClock(plane.database.db, at(0));
  const run = await plane.launch('one');
  const holdBack = (name: string, seconds: number) =>
    plane.rows('update runplane.throttles set not_before = $1 where name = $2', [at(seconds), name]);
  await holdBack('first', 10);
  await holdBack('second', 500);
  expect(await reasonOf(run)).toEqual({
    reason: 'PROVIDER_BACKOFF',
    detail: 'Throttle second is held back by its provider.',
    since: at(0),
    until: at(500),
  });
  await holdBack('first', 600);
  expect(await reasonOf(run)).toMatchObject({ detail: expect.stringContaining('first'), until: at(600) });
});

test('tells since when a step waits for the ones before it, also again after a retry', async () => {
  await stopClock(plane.database.db, at(0));
  await plane.agent('a', { retryPolicy: { maxAttempts: 1 } });
  await plane.job('one', ['a', { name: 'b', agent: 'a', dependsOn: ['a'] }]);
  // That it was asked for later is no time since when it waits for a step.
  const later = await plane.launch('one', { availableAt: at(1000) });
  const run = await plane.launch('one');
  const [task] = await work();
  expect(await reasonOf(run, 'b')).toMatchObject({ reason: 'DEPENDENCY', since: at(0) });
  if (task) await plane.report(task, { status: 'FAILED', error: { code: 'E', message: 'no' } });
  await stopClock(plane.database.db, at(3600));
  const taskId = await taskOf(run);
  expect(await plane.services.actions.retryTask({ taskId }, actor)).toMatchObject({
    kind: 'TaskActionSuccess',
  });
  await stopClock(plane.database.db, at(3700));
  expect(await reasonOf(run, 'b')).toMatchObject({ reason: 'DEPENDENCY', since: at(3600) });
  expect(await reasonOf(later, 'b')).toMatchObject({ reason: 'DEPENDENCY', since: at(0) });
});

test('tells of an earlier task of the same serial key', async () => {
  await plane.agent('a');
  await plane.job('one', ['a']);
  const first = await plane.launch('one', { serialKey: 's' });
  const second = await plane.launch('one', { serialKey: 's' });
  await work();
  expect(await reasonOf(first)).toBeNull();
  expect(await reasonOf(second)).toMatchObject({ reason: 'SERIAL_KEY' });
});

test('a worker that was not heard of for a minute serves nobody', async () => {
  await plane.agent('a');
  await plane.job('one', ['a']);
  await work();
  const run = await plane.launch('one');
  expect(await reasonOf(run)).toMatchObject({ reason: 'BEHIND_OTHERS' });
  expect((await read.workers.list(true, {})).edges).toHaveLength(1);
  await setClockAhead(plane.database.db, '61 seconds');
  expect(await reasonOf(run)).toMatchObject({ reason: 'NO_WORKER' });
  expect((await read.workers.list(true, {})).edges).toHaveLength(0);
  expect((await read.workers.list(false, {})).edges).toHaveLength(1);
});

test('tells that all slots are taken, of the pool, of an elastic one, of a worker that names agents', async () => {
  const { configuration, dispatch } = plane.services;
  await configuration.savePool({ name: 'small', slotsPerReplica: 1 }, actor);
  await configuration.savePool({ name: 'spare', slotsPerReplica: 1, elastic: true }, actor);
  await configuration.saveQueue({ name: 'small', pool: 'small', sharedWeight: 1 }, actor);
  await plane.agent('a', { queue: 'small' });
  await plane.job('one', ['a']);
  const runs = [];
  for (let i = 0; i < 4; i++) runs.push(await plane.launch('one'));
  const last = runs[3] ?? '';
  const claim = (more: object) => dispatch.claimTasks({ workerId: 'pooled', limit: 5, ...more });
  await claim({ pool: 'small' });
  expect(await reasonOf(last)).toMatchObject({ reason: 'POOL_BUSY' });
  await dispatch.claimTasks({ workerId: 'elastic', pool: 'spare', limit: 5 });
  expect(await reasonOf(last)).toMatchObject({ reason: 'POOL_BUSY' });
  await dispatch.claimTasks({ workerId: 'named', agents: ['a'], limit: 1, slots: 1 });
  expect(await reasonOf(last)).toMatchObject({ reason: 'POOL_BUSY' });
  await dispatch.claimTasks({ workerId: 'named', agents: ['a'], limit: 1, slots: 3 });
  expect(await reasonOf(last)).toBeNull();
});
