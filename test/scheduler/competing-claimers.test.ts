import { expect, test } from 'vitest';
import type { SaveThrottleInput } from '../../src/operator/types.ts';
import { at, stopClock } from '../support/clock.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { startProcess } from '../support/processes.ts';
import { count } from '../support/tier.ts';

/**
 * What was in each window at the moment of each claim: the claims of the last minute and second, and the tokens of all
 * attempts that had begun, until a minute after they were settled. Estimates are right here, so what is reserved is used.
 */
const fullestSql = `
with under as materialized (
  select h.name, a.started_at as began, u.at as settled, t.estimated_tokens as tokens
    from runplane.attempts a join runplane.tasks t on t.id = a.task_id join runplane.usage u on u.attempt_id = a.id
    join runplane.agent_throttles x on x.agent_id = t.agent_id join runplane.throttles h on h.id = x.throttle_id)
select m.name, max(w.tokens)::int as tokens, max(w.minute)::int as minute, max(w.second)::int as second
  from (select distinct name, began from under) m
 cross join lateral (
   select sum(o.tokens) filter (where o.settled > m.began - interval '60 s') as tokens,
          count(*) filter (where o.began > m.began - interval '60 s') as minute, count(*) filter (where o.began > m.began - interval '1 s') as second
     from under o where o.name = m.name and o.began <= m.began) w
 group by m.name`;

const limits: Record<string, Omit<SaveThrottleInput, 'name'>> = {
  tokens: { maxTokensPerMinute: 8000 },
  minute: { maxRequestsPerMinute: 80 },
  second: { maxRequestsPerSecond: 4 },
  all: { maxTokensPerMinute: 8000, maxRequestsPerMinute: 90, maxRequestsPerSecond: 5 },
};

test('claimers in several processes compete for budgets and rates, use them up and never exceed one', async () => {
  const tasks = count({ test: 300, soak: 3000 });
  const plane = await ControlPlane.start();
  let seconds = 0;
  await stopClock(plane.database.db, at(seconds));
  for (const [name, limit] of Object.entries(limits))
    await plane.services.configuration.saveThrottle({ name, ...limit }, actor);
  const agents: Record<string, string[]> = {
    a: ['tokens'],
    b: ['tokens'],
    c: ['minute', 'second'],
    d: ['second'],
    e: ['all'],
    f: ['all'],
  };
  for (const [name, throttles] of Object.entries(agents)) {
    await plane.agent(name, { throttles });
    await plane.job(name, [name]);
    const outcomes = await plane.services.intake.launchRuns(
      Array.from({ length: tasks / 2 }, () => {
        const tokens = 1 + Math.floor(Math.random() * 200);
        return { job: name, estimatedTokens: tokens, config: { tokens } };
      }),
    );
    expect(outcomes.every(({ kind }) => kind === 'LaunchRunSuccess')).toBe(true);
  }

  const claimers = await Promise.all(
    Array.from({ length: 3 }, () => startProcess('test/support/claimer.ts', [plane.database.url], /ready/)),
  );
  const left = async (): Promise<number> => {
    const [row] = await plane.rows<{ n: number }>(
      'select (select count(*) from runplane.ready_tasks)::int + (select count(*) from runplane.leases)::int as n',
    );
    return row?.n ?? 0;
  };
  while ((await left()) > 0) {
    seconds += 0.25;
    await stopClock(plane.database.db, at(seconds));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const codes = await Promise.all(claimers.map((claimer) => claimer.end('SIGTERM')));
  expect(codes, claimers.map((claimer) => claimer.output()).join('\n')).toEqual([0, 0, 0]);

  const fullest = await plane.rows<{ name: string; tokens: number; minute: number; second: number }>(
    fullestSql,
  );
  console.log(`${tasks * 3} claims in ${seconds} s of their clock: ${JSON.stringify(fullest)}`);
  const of = (name: string) => fullest.find((one) => one.name === name);
  expect(of('tokens')?.tokens).toBeLessThanOrEqual(8000);
  expect(of('tokens')?.tokens).toBeGreaterThan(7500);
  expect(of('minute')?.minute).toBe(80);
  expect(of('second')?.second).toBe(4);
  expect(of('all')?.tokens).toBeLessThanOrEqual(8000);
  expect(of('all')).toMatchObject({ second: 5 });
  expect(of('all')?.minute).toBeLessThanOrEqual(90);
  expect(await plane.rows('select from runplane.usage')).toHaveLength(tasks * 3);
  await plane.stop();
}, 900_000);
