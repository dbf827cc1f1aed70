import { describe, expect, it } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import type { ReportResultInput } from '../../src/result/types.ts';
import { limitedAgent } from '../support/limited-agent.ts';

const story = limitedAgent();
const { advance, limited, limit, ask, claimOne, done, used, window, waits, claimable } = story;

const learned = () =>
  story.plane.rows(
    'select tokens::int, expected_tokens::int as expected, seconds from runplane.settled_attempts order by id',
  );

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
    await done((await story.plane.claim(['llm'], 1))[0] as Assignment, used(5));
    await done(await claimOne(), used(5));
    await advance(60);
    const [big] = await story.plane.claim(['llm'], 5);
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

  it('with room for all leaves the agent its own limit', async () => {
    await limited({ maxTokensPerMinute: 1_000_000 });
    await story.plane.agent('llm', { throttles: ['api'], maxConcurrentTasks: 2 });
    for (let i = 0; i < 10; i++) await ask(1);
    expect(await claimable(5)).toBe(2);
    expect(await claimable(5)).toBe(0);
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
      story.plane.services.dispatch.extendLeases([
        { ...story.plane.credentials(running), usage: [{ outputTokens: 50, responseId: 'r1' }] },
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
    await done(running, used(80, { at: new Date(story.now.getTime() - 45_000) }));
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
      await story.plane.rows('update runplane.leases set expires_at = runplane.clock()');
      await done(attempt, used(5000));
      await advance(61);
    }
    await story.plane.rows('select runplane.learn_estimates()');
    await ask(5000);
    await ask(400);
    await ask(200);
    expect(await story.plane.claim(['llm'], 1)).toHaveLength(1);
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
    await story.plane.rows('select runplane.learn_estimates()');
    await advance(61);
    await ask();
    await claimOne();
    expect(await window()).toMatchObject({ tokens: 90 });
  });

  it.each<[string, ReportResultInput['status'] | 'LOST' | 'LATE']>([
    ['completes', 'COMPLETED'],
    ['fails', 'FAILED'],
    ['is handed back', 'RELEASED'],
    ['is lost', 'LOST'],
    ['is lost and reports late', 'LATE'],
  ])('learns from what heartbeats told of an attempt that %s, once', async (_, end) => {
    await limited({ maxTokensPerMinute: 1_000_000 });
    await ask(7);
    const running = await claimOne();
    await story.plane.services.dispatch.extendLeases([
      { ...story.plane.credentials(running), usage: used(300, { responseId: 'r1' }) },
    ]);
    expect(await learned()).toEqual([]);
    await advance(30);
    if (end === 'LOST' || end === 'LATE') {
      await story.plane.expire(running);
      await story.plane.sweep(running);
      expect(await learned()).toEqual([{ tokens: 300, expected: 7, seconds: 30 }]);
      if (end === 'LATE') await done(running, [...used(300, { responseId: 'r1' }), ...used(55)]);
    } else {
      const error = end === 'FAILED' ? { code: 'E' } : null;
      await story.plane.report(running, { status: end, error, usage: used(300, { responseId: 'r1' }) });
    }
    expect(await learned()).toEqual([{ tokens: end === 'LATE' ? 355 : 300, expected: 7, seconds: 30 }]);
    await story.plane.rows('select runplane.learn_estimates()');
    expect(await story.plane.rows('select tokens::int, seconds from runplane.agent_estimates')).toEqual([
      { tokens: end === 'LATE' ? 355 : 300, seconds: 30 },
    ]);
  });

  it('is shared by agents and shrinks or grows while they run', async () => {
    await limited({ maxTokensPerMinute: 100 }, ['llm', 'other']);
    await ask(60);
    await story.plane.launch('other', { estimatedTokens: 60 });
    expect(await story.plane.claim(['llm', 'other'], 5)).toHaveLength(1);
    await limit({ maxTokensPerMinute: 50 });
    expect(await story.plane.claim(['llm', 'other'], 5)).toHaveLength(0);
    await limit({ maxTokensPerMinute: 120 });
    expect(await story.plane.claim(['llm', 'other'], 5)).toHaveLength(1);
    await limit({});
    await ask(1_000_000);
    expect(await story.plane.claim(['llm', 'other'], 5)).toHaveLength(1);
  });

  it('counts an attempt that was lost no more, and what it reports late', async () => {
    await limited({ maxTokensPerMinute: 100 });
    await ask(100);
    const lost = await claimOne();
    await story.plane.expire(lost);
    await story.plane.sweep(lost);
    expect(await window()).toMatchObject({ tokens: 0 });
    await story.plane.report(lost, {
      status: 'FAILED',
      error: { code: 'E', message: 'late' },
      usage: used(70),
    });
    expect(await window()).toMatchObject({ tokens: 70 });
  });
});

describe('what is learned', () => {
  /** Attempts that ended, of tasks that said what they would use. */
  const settle = (said: number | null, tokens: string, seconds: string, attempts: number) =>
    story.plane.rows(
      `insert into runplane.settled_attempts (attempt_id, agent_id, tokens, expected_tokens, seconds)
       select gen_random_uuid(), a.id, ${tokens}, ${said}, ${seconds} from runplane.agents a, generate_series(1, ${attempts}) i where a.name = 'llm'`,
    );
  const reservedOf = async (estimatedTokens: number): Promise<number | undefined> => {
    await story.plane.rows('select runplane.learn_estimates()');
    await ask(estimatedTokens);
    await claimOne();
    return (await window())?.tokens;
  };

  it.each<[string, number | null, string, number, number]>([
    ['99 tasks is no shortfall yet', 100, '100 + i', 99, 100],
    ['100 tasks is the 95th percentile of it', 100, '100 + i', 100, 195],
    ['the last 200 tasks only', 100, 'case when i <= 100 then 1 else 130 end', 300, 130],
    ['tasks far below the truth raises estimates threefold at most', 100, '1000', 100, 300],
    ['tasks that use less than they said lowers nothing', 100, '10', 100, 100],
    ['tasks that said nothing is none', null, '1000', 100, 100],
    ['tasks that said 0 is none', 0, '1000', 100, 100],
  ])('of the shortfall of %s', async (_, said, tokens, attempts, reserved) => {
    await limited({ maxTokensPerMinute: 1_000_000 });
    await settle(said, tokens, '1', attempts);
    expect(await reservedOf(100)).toBe(reserved);
  });

  it.each<[string, string, number, number]>([
    ['an odd number', '100 * i * i', 3, 9000],
    ['some quick and one that took hours', 'case when i = 5 then 90000 else 120 end', 5, 30_000],
    ['mostly quick ones, within the minute', 'case when i <= 3 then 5 else 3600 end', 5, 60_000],
  ])('of seconds is the median: %s', async (_, seconds, attempts, reserved) => {
    await limited({ maxTokensPerMinute: 1_000_000 });
    await settle(null, '1', seconds, attempts);
    expect(await reservedOf(60_000)).toBe(reserved);
  });
});

it('a task that is larger than the budget runs within two windows, though small ones keep coming', async () => {
  await limited({ maxTokensPerMinute: 100 });
  await ask(5);
  await done(await claimOne(), used(5));
  const big = await ask(1000);
  let small = 0;
  for (let seconds = 0; ; seconds += 2) {
    expect(seconds).toBeLessThanOrEqual(120);
    for (let i = 0; i < 2; i++) await ask(5);
    const before = await window();
    const claimed = await story.plane.claim(['llm'], 50);
    if (claimed.some(({ runId }) => runId === big)) {
      expect([claimed.length, before?.tokens]).toEqual([1, 0]);
      break;
    }
    for (const one of claimed) await done(one, used(5));
    small += claimed.length;
    await advance(2);
  }
  // Until it was its turn.
  expect(small).toBeGreaterThan(10);
  expect(await claimable()).toBe(0);
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
    for (const assignment of await story.plane.claim(['llm'], 4)) {
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
    await story.plane.rows('select runplane.learn_estimates()');
    await advance(60);
    await story.plane.launch('llm');
    await story.plane.launch('llm', { estimatedTokens: largest });
    expect(await claimable()).toBe(1);
  });
});
