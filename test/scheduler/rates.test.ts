import { describe, expect, it } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import { actor } from '../support/control-plane.ts';
import { limitedAgent } from '../support/limited-agent.ts';

const story = limitedAgent();
const { advance, limited, limit, ask, done, used, window, waits, claimable } = story;

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

  it('of which only that of the second is used up opens after it, though there is one of the minute too', async () => {
    await limited({ maxRequestsPerMinute: 5, maxRequestsPerSecond: 2 });
    for (let i = 0; i < 2; i++) await ask();
    expect(await claimable()).toBe(2);
    const next = await ask();
    expect(await waits(next)).toEqual({ reason: 'REQUEST_RATE', seconds: 1 });
    await advance(1);
    expect(await waits(next)).toEqual({ reason: 'BEHIND_OTHERS', seconds: null });
  });

  it('of which both are used up opens after the later, and one of nothing never', async () => {
    await limited({ maxRequestsPerMinute: 2, maxRequestsPerSecond: 1 });
    await ask();
    await claimable();
    await advance(50);
    await ask();
    await claimable();
    const next = await ask();
    expect(await waits(next)).toEqual({ reason: 'REQUEST_RATE', seconds: 10 });
    await limit({ maxRequestsPerMinute: 0, maxRequestsPerSecond: 1 });
    expect(await waits(next)).toEqual({ reason: 'REQUEST_RATE', seconds: null });
  });

  it('that was exceeded opens when enough has left its window', async () => {
    await limited({ maxRequestsPerSecond: 2 });
    await ask();
    const task = await story.claimOne();
    await advance(0.4);
    await done(task, used(1, { requests: 3 }));
    const next = await ask();
    expect(await waits(next)).toEqual({ reason: 'REQUEST_RATE', seconds: 1 });
    await advance(0.999);
    expect(await claimable()).toBe(0);
    await advance(0.001);
    expect(await claimable()).toBe(1);
  });

  it('of two throttles opens with the later', async () => {
    await limited({ maxRequestsPerSecond: 1 });
    await story.plane.services.configuration.saveThrottle({ name: 'key', maxRequestsPerMinute: 1 }, actor);
    await story.plane.agent('llm', { throttles: ['api', 'key'] });
    await ask();
    await claimable();
    const next = await ask();
    expect(await waits(next)).toEqual({ reason: 'REQUEST_RATE', seconds: 60 });
    await advance(59.9);
    expect(await waits(next)).toEqual({ reason: 'REQUEST_RATE', seconds: 0.1 });
  });

  it('is corrected by the requests that were made', async () => {
    await limited({ maxRequestsPerMinute: 10 });
    for (let i = 0; i < 3; i++) await ask();
    const [a, b, c] = (await story.plane.claim(['llm'], 3)) as [Assignment, Assignment, Assignment];
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
  const first = await story.plane.claim(['llm'], 10);
  expect(first).toHaveLength(3);
  await advance(1);
  expect(await claimable()).toBe(0);
  for (const attempt of first) await done(attempt, used(1));
  const second = await story.plane.claim(['llm'], 10);
  expect(second).toHaveLength(2);
  for (const attempt of second) await done(attempt, used(1));
  await advance(1);
  expect(await claimable()).toBe(0);
  await advance(57.9);
  expect(await claimable()).toBe(0);
  await advance(0.1);
  expect(await claimable()).toBe(3);
});
