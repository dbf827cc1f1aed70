import { beforeEach, describe, expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import type { ExecutionErrorInput } from '../../src/result/types.ts';
import { at, stopClock } from '../support/clock.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { moveDueTasks } from '../support/debounced.ts';

const providerKinds = ['RATE_LIMITED', 'PROVIDER_DOWN', 'QUOTA_EXHAUSTED'] as const;

let plane: ControlPlane;
/** Two throttles; who uses which says its name. */
beforeEach(async () => {
  plane = await ControlPlane.start();
  await stopClock(plane.database.db, at(0));
  for (const name of ['openai', 'gpu', 'spare'])
    await plane.services.configuration.saveThrottle({ name }, actor);
  for (const [name, throttles] of [
    ['both', ['openai', 'gpu']],
    ['openai', ['openai']],
    ['gpu', ['gpu']],
    ['none', []],
  ] as const) {
    await plane.agent(name, { throttles: [...throttles] });
    await plane.job(name, [name]);
  }
  return () => plane.stop();
});

async function claimOne(agent: string): Promise<Assignment> {
  const [assignment] = await plane.claim([agent], 1);
  if (!assignment) throw new Error(`nothing of ${agent}`);
  return assignment;
}
const fail = (assignment: Assignment, error: Partial<ExecutionErrorInput>) =>
  plane.report(assignment, { status: 'FAILED', error: { code: 'UPSTREAM', message: '', ...error } });

/** Until how many seconds of the story each throttle is held back. */
async function heldBack(): Promise<Record<string, number>> {
  const rows = await plane.rows<{ name: string; seconds: number }>(
    `select name, extract(epoch from not_before - $1)::float8 as seconds from runplane.throttles where not_before is not null`,
    [at(0)],
  );
  return Object.fromEntries(rows.map(({ name, seconds }) => [name, seconds]));
}

describe.each(providerKinds)('a failure of the kind %s', (kind) => {
  test('holds back every agent of its throttles so long as it asks for, and spends no attempt', async () => {
    for (const agent of ['both', 'openai', 'gpu', 'none']) await plane.launch(agent);
    const failed = await claimOne('both');
    expect(await fail(failed, { kind, retryAfterSeconds: 90 })).toMatchObject({ taskStatus: 'ENQUEUED' });
    expect(await heldBack()).toEqual({ openai: 90, gpu: 90 });
    expect(await plane.rows('select counted from runplane.attempts')).toEqual([{ counted: false }]);
    const agents = ['both', 'openai', 'gpu', 'none'];
    await stopClock(plane.database.db, at(89));
    expect((await plane.claim(agents)).map(({ agent }) => agent)).toEqual(['none']);
    await stopClock(plane.database.db, at(90));
    await moveDueTasks(plane);
    expect((await plane.claim(agents)).map(({ agent }) => agent).sort()).toEqual(['both', 'gpu', 'openai']);
  });

  test('without a time of its own holds back for 30 s, and a longer pause is not made shorter', async () => {
    await plane.launch('openai');
    await plane.launch('openai');
    const first = await claimOne('openai');
    const second = await claimOne('openai');
    await fail(first, { kind });
    expect(await heldBack()).toEqual({ openai: 30 });
    await fail(second, { kind, retryAfterSeconds: 5 });
    expect(await heldBack()).toEqual({ openai: 30 });
  });

  test('that names a throttle holds back that one alone', async () => {
    for (const agent of ['both', 'openai', 'gpu']) await plane.launch(agent);
    await fail(await claimOne('both'), { kind, retryAfterSeconds: 60, throttle: 'gpu' });
    expect(await heldBack()).toEqual({ gpu: 60 });
    expect((await plane.claim(['both', 'openai', 'gpu'])).map(({ agent }) => agent)).toEqual(['openai']);
  });
});

test.each(['opneai', 'spare'])(
  'the name %s, which the agent has no throttle of, holds back all that it has',
  async (throttle) => {
    await plane.launch('both');
    await fail(await claimOne('both'), { kind: 'PROVIDER_DOWN', retryAfterSeconds: 60, throttle });
    expect(await heldBack()).toEqual({ openai: 60, gpu: 60 });
  },
);

test.each(['TRANSIENT', 'INVALID_OUTPUT'] as const)(
  'any other kind, as %s, with a time delays its task alone, and counts',
  async (kind) => {
    await plane.launch('openai');
    await plane.launch('openai');
    await fail(await claimOne('openai'), { kind, retryAfterSeconds: 90, throttle: 'openai' });
    expect(await heldBack()).toEqual({});
    expect(await plane.rows('select counted from runplane.attempts')).toEqual([{ counted: true }]);
    expect(await plane.claim(['openai'])).toHaveLength(1);
    expect(
      await plane.rows(
        'select extract(epoch from available_at - $1)::int as seconds from runplane.delayed_tasks',
        [at(0)],
      ),
    ).toEqual([{ seconds: 90 }]);
  },
);

test('after 20 ends in a row that spent no attempt the next one counts, whatever their kinds', async () => {
  await plane.job('once', [{ name: 'only', agent: 'openai', maxAttempts: 1 }]);
  const run = await plane.launch('once');
  for (let end = 0; end <= 20; end++) {
    const attempt = await claimOne('openai');
    const kind = providerKinds[end % 3] ?? 'RATE_LIMITED';
    expect(await fail(attempt, { kind, retryAfterSeconds: 0 })).toMatchObject({
      taskStatus: end < 20 ? 'ENQUEUED' : 'FAILED',
    });
  }
  expect(
    await plane.rows('select counted, count(*)::int as ends from runplane.attempts group by 1 order by 1'),
  ).toEqual([
    { counted: false, ends: 20 },
    { counted: true, ends: 1 },
  ]);
  expect(await plane.run(run)).toMatchObject({ status: 'FAILED' });
  expect(await plane.rows('select error_kind from runplane.dead_letters')).toEqual([
    { error_kind: 'QUOTA_EXHAUSTED' },
  ]);
});

test('what an attempt says that has lost its lease holds nothing back', async () => {
  await plane.launch('openai');
  const lost = await claimOne('openai');
  await plane.expire(lost);
  await plane.sweep(lost);
  expect(await fail(lost, { kind: 'PROVIDER_DOWN', retryAfterSeconds: 60 })).toMatchObject({
    outcome: 'SUPERSEDED',
  });
  expect(await heldBack()).toEqual({});
});
