import { beforeEach, describe, expect, it } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import type { SaveThrottleInput } from '../../src/operator/types.ts';
import { createRead } from '../../src/read/read.ts';
import type { ModelUsageInput } from '../../src/result/types.ts';
import { stopClock } from '../support/clock.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
let now: Date;
beforeEach(async () => {
  plane = await ControlPlane.start();
  now = new Date();
  await advance(0);
  return () => plane.stop();
});

async function advance(seconds: number): Promise<void> {
  now = new Date(now.getTime() + seconds * 1000);
  await stopClock(plane.database.db, now);
}

/** An agent under a throttle, and a job for it, all of one name. */
async function limited(limits: Omit<SaveThrottleInput, 'name'>, agents = ['llm']): Promise<void> {
  await limit(limits);
  for (const agent of agents) {
    await plane.agent(agent, { throttles: ['api'] });
    await plane.job(agent, [agent]);
  }
}
const limit = (limits: Omit<SaveThrottleInput, 'name'>) =>
  plane.services.configuration.saveThrottle({ name: 'api', ...limits }, actor);

const ask = (estimatedTokens?: number, input: object = {}): Promise<string> =>
  plane.launch('llm', { estimatedTokens, ...input });

async function claimOne(): Promise<Assignment> {
  const [assignment] = await plane.claim(['llm'], 1);
  if (!assignment) throw new Error('nothing was claimed');
  return assignment;
}
const done = (assignment: Assignment, usage: ModelUsageInput[] = []) =>
  plane.report(assignment, { status: 'COMPLETED', output: {}, usage });
const used = (outputTokens: number, more: ModelUsageInput = {}): ModelUsageInput[] => [
  { outputTokens, ...more },
];
const window = async () => {
  const [use] = await plane.rows<{ tokens: number; requests: number }>(
    `select s.tokens::int, s.requests::int from runplane.throttles t
      cross join lateral runplane.throttle_state(array[t.id], runplane.clock()) s where t.name = 'api'`,
  );
  return use;
};
/** Why the task of a run waits, and for how many seconds. */
const waits = async (runId: string) => {
  const [task] = await plane.rows<{ id: string }>('select id from runplane.tasks where run_id = $1', [runId]);
  const waiting = (await createRead(plane.database.db).waiting.ofTasks([task?.id ?? ''])).get(task?.id ?? '');
  const seconds = waiting?.until && (waiting.until.getTime() - now.getTime()) / 1000;
  return waiting && { reason: waiting.reason, seconds };
};
/** How many of the waiting tasks may run now. */
const claimable = async (most = 50): Promise<number> => (await plane.claim(['llm'], most)).length;

describe('a budget of tokens', () => {
  it('admits up to exactly its limit, and more as the window moves on', async () => {
    await limited({ maxTokensPerMinute: 10 });
    await ask(9);
    await done(await claimOne(), used(9));
    await advance(20);
    const tooMuch = await ask(2);
    expect(await claimable()).toBe(0);
    expect(await waits(tooMuch)).toEqual({ reason: 'TOKEN_BUDGET', seconds: 40 });
    await ask(1);
    expect(await claimable()).toBe(1);
    await advance(39.9);
    expect(await claimable()).toBe(0);
    await advance(0.1);
    expect(await claimable()).toBe(1);
  });

  it('reserves estimates while attempts run, and gets back what they did not use', async () => {
    await limited({ maxTokensPerMinute: 5000 });
    await ask(5000);
    const next = await ask(4100);
    const first = await claimOne();
    expect(await window()).toMatchObject({ tokens: 5000 });
    expect(await claimable()).toBe(0);
    expect(await waits(next)).toEqual({ reason: 'TOKEN_BUDGET', seconds: null });
    await done(first, used(900));
    expect(await window()).toMatchObject({ tokens: 900 });
    expect(await claimable()).toBe(1);
  });

  it('counts uncached input, cache writes, output and reasoning, and no cache reads', async () => {
    await limited({ maxTokensPerMinute: 1_000_000 });
    await ask(1);
    await done(await claimOne(), [
      {
        inputTokens: 1,
        cacheReadTokens: 1000,
        cacheWriteTokens: 20,
        cacheWrite1hTokens: 300,
        outputTokens: 4000,
        reasoningTokens: 50_000,
      },
    ]);
    expect(await window()).toMatchObject({ tokens: 54_321 });
  });

  it('lets a task that is larger than all of it run alone, in an empty window', async () => {
    await limited({ maxTokensPerMinute: 100 });
    await ask(5);
    await ask(1000);
    await ask(5, { priority: -1 });
    await done((await plane.claim(['llm'], 1))[0] as Assignment, used(5));
    await done(await claimOne(), used(5));
    await advance(60);
    const [big] = await plane.claim(['llm'], 5);
    expect(big).toBeDefined();
    expect(await claimable()).toBe(0);
    await done(big as Assignment, used(1000));
    expect(await claimable()).toBe(0);
  });

  it('has debt when more is used than was expected', async () => {
    await limited({ maxTokensPerMinute: 100 });
    await ask(10);
    await ask(1);
    await ask(1);
    await done(await claimOne(), used(100));
    expect(await claimable()).toBe(0);
    await advance(60);
    expect(await claimable()).toBe(2);
  });

  it('of 0 admits nothing', async () => {
    await limited({ maxTokensPerMinute: 0 });
    await ask(0);
    expect(await claimable()).toBe(0);
  });

  it('settles what heartbeats tell, once', async () => {
    await limited({ maxTokensPerMinute: 100 });
    await ask(60);
    await ask(40);
    await ask(30);
    const running = await claimOne();
    const beat = () =>
      plane.services.dispatch.extendLeases([
        { ...plane.credentials(running), usage: [{ outputTokens: 50, responseId: 'r1' }] },
      ]);
    await beat();
    await beat();
    expect(await window()).toMatchObject({ tokens: 60 });
    await advance(60);
    // Of its estimate 10 are left.
    expect(await window()).toMatchObject({ tokens: 10 });
    expect(await claimable()).toBe(2);
    await done(running, [{ outputTokens: 50, responseId: 'r1' }, { outputTokens: 7 }]);
    expect(await window()).toMatchObject({ tokens: 77 });
  });

  it('counts tokens at the time of the call where it is told', async () => {
    await limited({ maxTokensPerMinute: 100 });
    await ask(10);
    const running = await claimOne();
    await advance(50);
    await done(running, used(80, { at: new Date(now.getTime() - 45_000) }));
    expect(await window()).toMatchObject({ tokens: 80 });
    await advance(15);
    expect(await window()).toMatchObject({ tokens: 0 });
  });

  it('reserves of a long attempt only what it may use in a minute', async () => {
    await limited({ maxTokensPerMinute: 1000 });
    for (let i = 0; i < 3; i++) {
      await ask(1);
      const attempt = await claimOne();
      await advance(600);
      await plane.rows('update runplane.leases set expires_at = runplane.clock()');
      await done(attempt, used(5000));
      await advance(61);
    }
    await plane.rows('select runplane.learn_estimates()');
    await ask(5000);
    await ask(400);
    await ask(200);
    expect(await plane.claim(['llm'], 1)).toHaveLength(1);
    expect(await window()).toMatchObject({ tokens: 500 });
    expect(await claimable()).toBe(2);
  });

  it('expects what the agent used before, the 90th percentile, and 4,000 of a new one', async () => {
    await limited({ maxTokensPerMinute: 100_000 });
    await ask();
    const first = await claimOne();
    expect(await window()).toMatchObject({ tokens: 4000 });
    await done(first, used(10));
    for (let i = 2; i <= 10; i++) {
      await ask(1);
      await done(await claimOne(), used(i * 10));
    }
    await plane.rows('select runplane.learn_estimates()');
    await advance(61);
    await ask();
    await claimOne();
    expect(await window()).toMatchObject({ tokens: 90 });
  });

  it('is shared by agents and shrinks or grows while they run', async () => {
    await limited({ maxTokensPerMinute: 100 }, ['llm', 'other']);
    await ask(60);
    await plane.launch('other', { estimatedTokens: 60 });
    expect(await plane.claim(['llm', 'other'], 5)).toHaveLength(1);
    await limit({ maxTokensPerMinute: 50 });
    expect(await plane.claim(['llm', 'other'], 5)).toHaveLength(0);
    await limit({ maxTokensPerMinute: 120 });
    expect(await plane.claim(['llm', 'other'], 5)).toHaveLength(1);
    await limit({});
    await ask(1_000_000);
    expect(await plane.claim(['llm', 'other'], 5)).toHaveLength(1);
  });

  it('counts an attempt that was lost no more, and what it reports late', async () => {
    await limited({ maxTokensPerMinute: 100 });
    await ask(100);
    const lost = await claimOne();
    await plane.expire(lost);
    await plane.sweep(lost);
    expect(await window()).toMatchObject({ tokens: 0 });
    await plane.report(lost, { status: 'FAILED', error: { code: 'E', message: 'late' }, usage: used(70) });
    expect(await window()).toMatchObject({ tokens: 70 });
  });
});

describe('a big task at the head', () => {
  beforeEach(() => limited({ maxTokensPerMinute: 100 }));

  /** Small tasks come as fast as the budget lets them pass, and end in the second in which they begin; answers the estimates of what ran. */
  async function drive(seconds: number): Promise<number[]> {
    const sizes: number[] = [];
    for (let second = 0; second < seconds; second += 6) {
      await ask(10);
      for (const attempt of await plane.claim(['llm'], 20)) {
        const [task] = await plane.rows<{ size: number }>(
          'select estimated_tokens::int as size from runplane.tasks where id = $1',
          [attempt.taskId],
        );
        sizes.push(task?.size ?? 0);
        await done(attempt, used(task?.size ?? 0));
      }
      await advance(6);
    }
    return sizes;
  }

  it('is passed by smaller ones for nearly a window, then no more, and runs within two', async () => {
    await drive(60);
    await ask(95);
    // The last ones that pass have 10 s to end.
    expect(await drive(60)).toEqual(Array.from({ length: 9 }, () => 10));
    const [first, ...rest] = await drive(60);
    expect(first).toBe(95);
    expect(rest).toEqual([]);
  });

  /** A task of 95 waits for the whole window, and has done so for 51 seconds; 60 are used by now. */
  async function holdBig(): Promise<string> {
    await ask(30);
    await done(await claimOne(), used(30));
    const big = await ask(95);
    expect(await claimable()).toBe(0);
    await advance(49);
    await ask(30);
    await done((await plane.claim(['llm'], 1))[0] as Assignment, used(30));
    await advance(2);
    return big;
  }

  it('never holds up tasks of a higher priority', async () => {
    await holdBig();
    const held = await ask(20);
    expect(await claimable()).toBe(0);
    expect(await waits(held)).toEqual({ reason: 'TOKEN_BUDGET', seconds: null });
    const urgent = await ask(20, { priority: 5 });
    expect((await waits(urgent))?.reason).not.toBe('TOKEN_BUDGET');
    expect(await claimable()).toBe(1);
  });

  it('holds nobody up once it is cancelled', async () => {
    const big = await holdBig();
    await ask(20);
    expect(await claimable()).toBe(0);
    await plane.services.actions.cancelRun({ runId: big }, actor);
    expect(await claimable()).toBe(1);
  });
});

describe('a rate of requests', () => {
  it('a minute counts each claim for 60 seconds', async () => {
    await limited({ maxRequestsPerMinute: 3 });
    for (let i = 0; i < 5; i++) await ask();
    expect(await claimable(2)).toBe(2);
    await advance(30);
    expect(await claimable()).toBe(1);
    const next = await ask();
    expect(await waits(next)).toEqual({ reason: 'REQUEST_RATE', seconds: 30 });
    await advance(29.9);
    expect(await claimable()).toBe(0);
    await advance(0.1);
    expect(await claimable()).toBe(2);
    expect(await window()).toMatchObject({ requests: 3 });
  });

  it('a second likewise', async () => {
    await limited({ maxRequestsPerSecond: 2 });
    for (let i = 0; i < 5; i++) await ask();
    expect(await claimable()).toBe(2);
    expect(await waits(await ask())).toEqual({ reason: 'REQUEST_RATE', seconds: 1 });
    await advance(0.999);
    expect(await claimable()).toBe(0);
    await advance(0.001);
    expect(await claimable()).toBe(2);
  });

  it('is corrected by the requests that were made', async () => {
    await limited({ maxRequestsPerMinute: 10 });
    for (let i = 0; i < 3; i++) await ask();
    const [a, b, c] = (await plane.claim(['llm'], 3)) as [Assignment, Assignment, Assignment];
    await done(a, used(1, { requests: 5 }));
    expect(await window()).toMatchObject({ requests: 7 });
    await done(b, used(1, { requests: 0 }));
    expect(await window()).toMatchObject({ requests: 6 });
    await done(c, [...used(1), ...used(1)]);
    expect(await window()).toMatchObject({ requests: 7 });
  });
});

it('of several limits the strictest holds', async () => {
  await limited({
    maxConcurrentTasks: 4,
    maxTokensPerMinute: 100,
    maxRequestsPerMinute: 5,
    maxRequestsPerSecond: 3,
  });
  for (let i = 0; i < 10; i++) await ask(30);
  const first = await plane.claim(['llm'], 10);
  expect(first).toHaveLength(3);
  await advance(1);
  expect(await claimable()).toBe(0);
  for (const attempt of first) await done(attempt, used(1));
  const second = await plane.claim(['llm'], 10);
  expect(second).toHaveLength(2);
  for (const attempt of second) await done(attempt, used(1));
  await advance(1);
  expect(await claimable()).toBe(0);
  await advance(57.9);
  expect(await claimable()).toBe(0);
  await advance(0.1);
  expect(await claimable()).toBe(3);
});

describe('what waits for tokens', () => {
  it('hides no other agent of its queue, however much of it there is', async () => {
    await limited({ maxTokensPerMinute: 10 });
    await plane.agent('free');
    await plane.job('free', ['free']);
    for (let i = 0; i < 80; i++) await ask(9, { priority: 1 });
    await claimOne();
    await plane.launch('free');
    expect(await plane.claim(['llm', 'free'], 1)).toMatchObject([{ agent: 'free' }]);
  });

  it('takes no share of its queue', async () => {
    await limited({ maxTokensPerMinute: 10 });
    await plane.services.configuration.saveQueue({ name: 'other', pool: 'core', weight: 1 }, actor);
    await plane.agent('free');
    await plane.agent('other', { queue: 'other' });
    for (const agent of ['free', 'other']) await plane.job(agent, [agent]);
    for (let i = 0; i < 60; i++) await ask(9, { priority: 1 });
    await claimOne();
    for (let i = 0; i < 60; i++) for (const job of ['free', 'other']) await plane.launch(job);
    const claimed = await plane.claim(['llm', 'free', 'other'], 60);
    expect(claimed.filter(({ agent }) => agent === 'free').length).toBeGreaterThan(10);
    expect(claimed.filter(({ agent }) => agent === 'other').length).toBeGreaterThan(10);
  });

  it('is passed by none of a lower priority for good, though a large one of the lowest is held for', async () => {
    await limited({ maxTokensPerMinute: 100 });
    const ran: string[] = [];
    const work = async (): Promise<void> => {
      for (const assignment of await plane.claim(['llm'])) {
        ran.push(assignment.runId);
        await done(assignment, used(20));
      }
      await advance(12);
    };
    for (let i = 0; i < 5; i++) {
      await ask(20);
      await work();
    }
    for (let i = 0; i < 30; i++) await ask(20);
    await ask(90, { priority: -1 });
    await work();
    const high = await ask(90, { priority: 1 });
    for (let i = 0; i < 15; i++) await work();
    expect(ran).toContain(high);
  });
});

describe('the largest numbers', () => {
  const largest = Number.MAX_SAFE_INTEGER;
  const usage = (answers: number) =>
    Array.from({ length: answers }, () => ({
      inputTokens: largest,
      outputTokens: largest,
      reasoningTokens: largest,
      requests: 1_000_000,
    }));

  it('are booked, shown, and over when the window is', async () => {
    await limited({ maxTokensPerMinute: 2_147_483_647, maxRequestsPerMinute: 2_147_483_647 });
    for (let i = 0; i < 5; i++) await ask(1);
    for (const assignment of await plane.claim(['llm'], 4)) {
      expect(await done(assignment, usage(1000))).toMatchObject({ outcome: 'APPLIED' });
    }
    expect(await claimable()).toBe(0);
    expect(await waits(await ask(1))).toMatchObject({ seconds: 60 });
    await advance(60);
    expect(await claimable()).toBe(2);
  });

  it('are learned, and claims go on', async () => {
    await limited({ maxTokensPerMinute: 2_147_483_647 });
    await ask(largest);
    const first = await claimOne();
    await advance(600);
    await done(first, usage(1000));
    await plane.rows('select runplane.learn_estimates()');
    await advance(60);
    await plane.launch('llm');
    await plane.launch('llm', { estimatedTokens: largest });
    expect(await claimable()).toBe(1);
  });
});
