import { expect, test } from 'vitest';
import { actor, ControlPlane } from '../support/control-plane.ts';

test('agents that share a throttle with little room leave the rest of a claim to others of their queue, however many they are', async () => {
  const plane = await ControlPlane.start();
  const throttles = {
    tight: { maxConcurrentTasks: 1 },
    slow: { maxRequestsPerMinute: 2 },
    // Room for one task that says nothing of its tokens.
    thrifty: { maxTokensPerMinute: 5_000 },
  };
  const agents: string[] = [];
  for (const [throttle, limit] of Object.entries(throttles)) {
    await plane.services.configuration.saveThrottle({ name: throttle, ...limit }, actor);
    for (let i = 0; i < 70; i++) {
      const name = `${throttle}-${i}`;
      await plane.agent(name, { throttles: [throttle] });
      agents.push(name);
    }
  }
  await plane.agent('free');
  agents.push('free');
  for (const agent of agents) {
    await plane.job(agent, [agent]);
    await plane.launch(agent);
  }
  await plane.launch('free');
  const claimed = await plane.claim(agents, 10);
  expect(claimed.map(({ agent }) => agent)).toEqual([
    'tight-0',
    'slow-0',
    'slow-1',
    'thrifty-0',
    'free',
    'free',
  ]);
  await plane.stop();
});
