import { beforeEach, describe, expect, it } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import { actor } from '../support/control-plane.ts';
import { limitedAgent } from '../support/limited-agent.ts';

const story = limitedAgent();
const { advance, limited, ask, claimOne, done, used, waits, claimable } = story;

describe('a big task at the head', () => {
  beforeEach(() => limited({ maxTokensPerMinute: 100 }));

  /** Small tasks come as fast as the budget lets them pass, and end in the second in which they begin; answers the estimates of what ran. */
  async function drive(seconds: number): Promise<number[]> {
    const sizes: number[] = [];
    for (let second = 0; second < seconds; second += 6) {
      await ask(10);
      for (const attempt of await story.plane.claim(['llm'], 20)) {
        const [task] = await story.plane.rows<{ size: number }>(
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
    await done((await story.plane.claim(['llm'], 1))[0] as Assignment, used(30));
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
    await story.plane.services.actions.cancelRun({ runId: big }, actor);
    expect(await claimable()).toBe(1);
  });
});

describe('what waits for tokens', () => {
  it('hides no other agent of its queue, however much of it there is', async () => {
    await limited({ maxTokensPerMinute: 10 });
    await story.plane.agent('free');
    await story.plane.job('free', ['free']);
    for (let i = 0; i < 80; i++) await ask(9, { priority: 1 });
    await claimOne();
    await story.plane.launch('free');
    expect(await story.plane.claim(['llm', 'free'], 1)).toMatchObject([{ agent: 'free' }]);
  });

  it('takes no share of its queue', async () => {
    await limited({ maxTokensPerMinute: 10 });
    await story.plane.services.configuration.saveQueue({ name: 'other', pool: 'core', weight: 1 }, actor);
    await story.plane.agent('free');
    await story.plane.agent('other', { queue: 'other' });
    for (const agent of ['free', 'other']) await story.plane.job(agent, [agent]);
    for (let i = 0; i < 60; i++) await ask(9, { priority: 1 });
    await claimOne();
    for (let i = 0; i < 60; i++) for (const job of ['free', 'other']) await story.plane.launch(job);
    const claimed = await story.plane.claim(['llm', 'free', 'other'], 60);
    expect(claimed.filter(({ agent }) => agent === 'free').length).toBeGreaterThan(10);
    expect(claimed.filter(({ agent }) => agent === 'other').length).toBeGreaterThan(10);
  });

  it('is passed by none of a lower priority for good, though a large one of the lowest is held for', async () => {
    await limited({ maxTokensPerMinute: 100 });
    const ran: string[] = [];
    const work = async (): Promise<void> => {
      for (const assignment of await story.plane.claim(['llm'])) {
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
