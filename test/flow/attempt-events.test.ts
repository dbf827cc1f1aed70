import { afterEach, beforeEach, expect, test } from 'vitest';
import { transaction } from '../../src/db/transaction.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { limits } from '../../src/domain/limits.ts';
import { createRead } from '../../src/read/read.ts';
import type { AttemptEventInput } from '../../src/result/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
let attempt: Assignment;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  await plane.launch('one');
  attempt = await claim();
});
afterEach(() => plane.stop());

const claim = async (): Promise<Assignment> => {
  const [task] = await plane.claim(['a'], 1);
  if (!task) throw new Error('nothing to claim');
  return task;
};
const append = (events: AttemptEventInput[], firstSequence?: number) =>
  plane.services.attemptEvents.append({ lease: plane.credentials(attempt), events, firstSequence });
const stored = () =>
  plane.rows<{ sequence: number; type: string; data: unknown }>(
    'select sequence, type, data from runplane.attempt_events order by attempt_id, sequence',
  );
const thoughts = (...texts: string[]) => texts.map((content) => ({ type: 'thought', data: { content } }));
const types = async () => (await stored()).map(({ data }) => (data as { content: string }).content);

test('events are numbered in the order in which they are appended', async () => {
  expect(await plane.tell(attempt, thoughts('one', 'two'))).toBe(2);
  const at = new Date('2026-03-04T05:06:07.089Z');
  expect(
    await plane.tell(attempt, [
      { type: 'my.own', at },
      { type: 'log', data: 'text' },
    ]),
  ).toBe(4);
  expect(await stored()).toEqual([
    { sequence: 1, type: 'thought', data: { content: 'one' } },
    { sequence: 2, type: 'thought', data: { content: 'two' } },
    { sequence: 3, type: 'my.own', data: null },
    { sequence: 4, type: 'log', data: 'text' },
  ]);
  expect(await plane.rows('select at from runplane.attempt_events where sequence = 3')).toEqual([{ at }]);
  expect(await plane.tell(attempt, [])).toBe(4);
});

test('an append that is repeated under its first sequence stores nothing twice', async () => {
  expect(await plane.tell(attempt, thoughts('1', '2'), 1)).toBe(2);
  expect(await plane.tell(attempt, thoughts('1', '2'), 1)).toBe(2);
  // Repeated with what was told since.
  expect(await plane.tell(attempt, thoughts('1', '2', '3'), 1)).toBe(3);
  expect(await plane.tell(attempt, thoughts('2'), 2)).toBe(3);
  expect(await types()).toEqual(['1', '2', '3']);
  expect(await append(thoughts('5'), 5)).toMatchObject({
    kind: 'InvalidInput',
    field: 'firstSequence',
    message: expect.stringContaining('number 4'),
  });
});

test('repeated while the first is under way, and beside others, each is stored once', async () => {
  const appends = Array.from({ length: 20 }, (_, i) => plane.tell(attempt, thoughts(`${i + 1}`), i + 1));
  await Promise.allSettled(appends);
  for (let i = 1; i <= 20; i++) await Promise.all([1, 2].map(() => plane.tell(attempt, thoughts(`${i}`), i)));
  expect(await types()).toEqual(Array.from({ length: 20 }, (_, i) => `${i + 1}`));
  const other = await ControlPlane.start({ database: plane.database });
  await Promise.all(
    [plane, other].flatMap((each) => [each.tell(attempt, thoughts('x')), each.tell(attempt, thoughts('y'))]),
  );
  expect(await stored()).toHaveLength(24);
  await other.services.stop();
});

test.each<[string, AttemptEventInput[], number | undefined, string]>([
  ['more than 500 events', Array.from({ length: 501 }, () => ({ type: 'log' })), undefined, 'events'],
  [
    'data over 64 KiB',
    [{ type: 'log' }, { type: 'log', data: 'x'.repeat(65_536) }],
    undefined,
    'events[1].data',
  ],
  ['a forbidden key', [{ type: 'log', data: JSON.parse('{"__proto__":1}') }], undefined, 'events[0].data'],
  ['a blank type', [{ type: ' ' }], undefined, 'events[0].type'],
  ['a type with NUL', [{ type: 'a\u0000' }], undefined, 'events[0].type'],
  ['a time that cannot be stored', [{ type: 'log', at: new Date(Number.NaN) }], undefined, 'events[0].at'],
  ['a first sequence below 1', [{ type: 'log' }], 0, 'firstSequence'],
])('%s is refused before anything is stored', async (_, events, firstSequence, field) => {
  expect(await append([...events], firstSequence)).toMatchObject({ kind: 'InvalidInput', field });
  expect(await stored()).toEqual([]);
});

test('appends of many attempts that share a transaction are each on their own', async () => {
  await plane.services.intake.launchRuns(Array.from({ length: 9 }, () => ({ job: 'one' })));
  const attempts = [attempt, ...(await plane.claim(['a']))];
  const outcomes = await Promise.all(
    attempts.map((each, i) =>
      plane.services.attemptEvents.append({
        lease: plane.credentials(each),
        events: thoughts(`${i}`),
        firstSequence: i === 3 ? 2 : 1,
      }),
    ),
  );
  expect(outcomes.filter(({ kind }) => kind === 'AppendAttemptEventsSuccess')).toHaveLength(9);
  expect(outcomes[3]).toMatchObject({ kind: 'InvalidInput', field: 'firstSequence' });
  expect((await types()).toSorted()).toEqual(['0', '1', '2', '4', '5', '6', '7', '8', '9']);
});

test('an attempt has so many events and so many bytes at most', async () => {
  await plane.tell(attempt, thoughts('first'));
  const fill = (sequence: number, bytes: number) =>
    plane.rows('update runplane.attempt_event_counts set last_sequence = $1, bytes = $2', [sequence, bytes]);
  const [before] = await plane.rows<{ bytes: number }>('select bytes from runplane.attempt_event_counts');
  await fill(limits.attemptEvents - 1, 0);
  expect(await append(thoughts('a', 'b'))).toMatchObject({
    kind: 'InvalidInput',
    field: 'events',
    message: expect.stringContaining('20000'),
  });
  await fill(1, limits.attemptEventBytes - 10);
  expect(await append(thoughts('a'))).toMatchObject({
    kind: 'InvalidInput',
    field: 'events',
    message: expect.stringContaining(`${limits.attemptEventBytes}`),
  });
  // What is there already can be repeated all the same.
  expect(await append(thoughts('first'), 1)).toMatchObject({ lastSequence: 1 });
  await fill(1, before?.bytes ?? 0);
  expect(await stored()).toHaveLength(1);
});

test('text that cannot be stored is repaired, and the attempt is marked, while it runs and after', async () => {
  const read = createRead(plane.database.db);
  const sanitized = async () =>
    (await read.attempts.byIds([attempt.attemptId])).get(attempt.attemptId)?.sanitized;
  await plane.tell(attempt, thoughts('clean'));
  expect(await sanitized()).toBe(false);
  await plane.tell(attempt, thoughts('a\u0000b\ud800'));
  expect(await types()).toEqual(['clean', 'a\ufffdb\ufffd']);
  expect(await sanitized()).toBe(true);
  await plane.report(attempt, { status: 'COMPLETED' });
  expect(await sanitized()).toBe(true);
});

test('an append that is refused leaves no trace of its attempt', async () => {
  expect(await append(thoughts('x'), 5)).toMatchObject({ kind: 'InvalidInput', field: 'firstSequence' });
  expect(await plane.rows('select attempt_id from runplane.attempt_event_counts')).toEqual([]);
  expect(await plane.tell(attempt, thoughts('one'), 1)).toBe(1);
});

test('the token of the lease is the credential, also after the lease is gone', async () => {
  const { attemptId } = plane.credentials(attempt);
  const { leaseToken } = plane.credentials({ attemptId: attempt.taskId });
  const unknown = plane.credentials({ attemptId: attempt.taskId });
  for (const lease of [{ attemptId, leaseToken }, { attemptId: 'nonsense', leaseToken }, unknown]) {
    expect(await plane.services.attemptEvents.append({ lease, events: thoughts('x') })).toMatchObject({
      kind: 'LeaseTokenInvalid',
    });
  }
  await plane.expire(attempt);
  await plane.sweep(attempt);
  const second = await claim();
  await plane.tell(attempt, thoughts('lost'));
  await plane.tell(second, thoughts('again'));
  await plane.report(second, { status: 'COMPLETED' });
  await plane.tell(second, thoughts('late'));
  expect(await stored()).toHaveLength(3);
});

test('with a task that is deleted its events are erased, and none come after', async () => {
  await plane.launch('one');
  const other = await claim();
  await plane.tell(other, thoughts('stays'));
  await plane.tell(attempt, thoughts('secret'));
  await plane.report(attempt, { status: 'COMPLETED' });
  await plane.services.actions.deleteTask({ taskId: attempt.taskId }, actor);
  expect(await append(thoughts('late'))).toMatchObject({ kind: 'LeaseTokenInvalid' });
  expect(await types()).toEqual(['stays']);
});

test('events that are appended while their task is deleted are erased with it', async () => {
  await plane.report(attempt, { status: 'COMPLETED' });
  const { db } = plane.database;
  let deleted: Promise<unknown> = Promise.resolve();
  let told: Promise<unknown> = Promise.resolve();
  // The append has what it needs and waits to write; the deletion comes to the task meanwhile.
  await transaction(db, async (tx) => {
    await tx.query({ text: 'lock table runplane.attempt_event_counts in exclusive mode' });
    told = append(thoughts('secret'));
    await plane.untilBlocked(1);
    deleted = plane.services.actions.deleteTask({ taskId: attempt.taskId }, actor);
    await plane.untilBlocked(2);
  });
  expect(await told).toMatchObject({ kind: 'AppendAttemptEventsSuccess' });
  expect(await deleted).toMatchObject({ kind: 'TaskActionSuccess' });
  expect(await stored()).toEqual([]);
});
