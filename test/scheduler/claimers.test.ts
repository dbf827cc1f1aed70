import { expect, test } from 'vitest';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { startProcess } from '../support/processes.ts';
import { count } from '../support/tier.ts';

/**
 * Every claim against the limit that was valid when it committed. A claim and a change of a limit lock the same row, and
 * both read the clock under that lock, so their times tell which came first. An attempt's row says when it ended a
 * moment before its lease is gone, so that this never sees more attempts at a time than a claim did.
 */
const aboveLimitsSql = (limited: 'agent' | 'throttle'): string => `
with attempts as (
  select a.started_at, a.finished_at, g.name as agent from runplane.attempts a
    join runplane.tasks t on t.id = a.task_id join runplane.agents g on g.id = t.agent_id),
counted as (
  ${
    limited === 'agent'
      ? 'select a.agent as name, a.started_at, a.finished_at from attempts a'
      : `select h.name, a.started_at, a.finished_at from attempts a join runplane.agents g on g.name = a.agent
           join runplane.agent_throttles x on x.agent_id = g.id join runplane.throttles h on h.id = x.throttle_id`
  }),
events as (
  select name, started_at as at, 1 as change from counted
  union all select name, finished_at, -1 from counted),
used as (
  select name, at, sum(change) over (partition by name order by at, change) as used, change from events),
limits as (
  select target as name, at, (after ->> 'maxConcurrentTasks')::int as most, lead(at) over (partition by target order by at, id) as until
    from runplane.audit_entries where action = '${limited}.save')
select u.name, u.at, max(u.used)::int as used, l.most from used u
  join limits l on l.name = u.name and u.at >= l.at and (l.until is null or u.at < l.until)
 where u.change = 1 group by u.name, u.at, l.most having max(u.used) > l.most limit 5`;

test('8 claimers in 4 processes never claim above limits that change all the time', async () => {
  const tasks = count({ test: 4000, soak: 200_000 });
  const agents = Array.from({ length: 50 }, (_, i) => `agent-${i}`);
  const plane = await ControlPlane.start();
  const { configuration, intake } = plane.services;
  const anyLimit = (): number => 1 + Math.floor(Math.random() * 16);
  // Budgets that nothing uses up: what they admit, the other limits may still not.
  const ample = { maxTokensPerMinute: 2_000_000_000 };
  const limitThrottle = (i: number) =>
    configuration.saveThrottle(
      { name: `throttle-${i}`, maxConcurrentTasks: anyLimit(), ...(i % 2 ? ample : {}) },
      actor,
    );
  const throttlesOf = (i: number): string[] => {
    if (i % 2 === 0) return [`throttle-${(i / 2) % 10}`, `throttle-${(i / 2 + 2) % 10}`];
    return i % 3 === 0 ? ['budget'] : [];
  };
  const limitAgent = (name: string, i: number) =>
    plane.agent(name, { maxConcurrentTasks: anyLimit(), throttles: throttlesOf(i) });
  await configuration.saveThrottle({ name: 'budget', ...ample }, actor);
  for (let i = 0; i < 10; i++) await limitThrottle(i);
  for (const [i, name] of agents.entries()) {
    await limitAgent(name, i);
    await plane.job(name, [name]);
  }
  for (let at = 0; at < tasks; at += 1000) {
    const outcomes = await intake.launchRuns(
      Array.from({ length: 1000 }, (_, i) => ({
        job: agents[i % agents.length] ?? '',
        customer: `customer-${i % 7}`,
      })),
    );
    expect(outcomes.every(({ kind }) => kind === 'LaunchRunSuccess')).toBe(true);
  }

  const claimers = await Promise.all(
    Array.from({ length: 4 }, () => startProcess('test/support/claimer.ts', [plane.database.url], /ready/)),
  );
  let changes = 0;
  for (;;) {
    const [left] = await plane.rows<{ n: number }>(
      'select (select count(*) from runplane.ready_tasks)::int + (select count(*) from runplane.leases)::int as n',
    );
    if (left?.n === 0) break;
    const i = Math.floor(Math.random() * 50);
    await limitAgent(agents[i] ?? '', i);
    await limitThrottle(i % 10);
    changes += 2;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const codes = await Promise.all(claimers.map((claimer) => claimer.end('SIGTERM')));
  expect(codes, claimers.map((claimer) => claimer.output()).join('\n')).toEqual([0, 0, 0, 0]);

  expect(await plane.rows(aboveLimitsSql('agent'))).toEqual([]);
  expect(await plane.rows(aboveLimitsSql('throttle'))).toEqual([]);
  const [sums] = await plane.rows<{ attempts: number; leases: number; completed: number }>(
    `select (select count(*) from runplane.attempts)::int as attempts, (select count(*) from runplane.leases)::int as leases,
            (select count(*) from runplane.runs where status = 'COMPLETED')::int as completed`,
  );
  expect(sums).toEqual({ attempts: tasks, leases: 0, completed: tasks });
  console.log(`${tasks} claims under ${changes} changes of limits`);
  await plane.stop();
}, 900_000);
