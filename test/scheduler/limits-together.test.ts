import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import { createRead } from '../../src/read/read.ts';
import type { WaitingReason } from '../../src/read/waiting.sql.ts';
import { at, stopClock } from '../support/clock.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { count } from '../support/tier.ts';

const agents = ['a', 'b', 'c'];
const throttles = ['x', 'y'];

const limitsOfThrottle = fc.record({
  maxConcurrentTasks: fc.constantFrom(null, null, 0, 1, 3, 100),
  maxTokensPerMinute: fc.constantFrom(null, null, 0, 50, 200, 1_000_000),
  maxRequestsPerMinute: fc.constantFrom(null, null, null, 0, 4, 1000),
  maxRequestsPerSecond: fc.constantFrom(null, null, null, 2),
});
const limitsOfAgent = fc.record({
  maxConcurrentTasks: fc.constantFrom(null, null, 0, 1, 2, 5),
  throttles: fc.subarray(throttles),
  batches: fc.boolean(),
});
const agent = fc.constantFrom(...agents);
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('launch' as const),
      agent,
      tasks: fc.integer({ min: 1, max: 5 }),
      estimatedTokens: fc.constantFrom(null, 0, 1, 20, 60, 150, 5000),
      priority: fc.constantFrom(0, 0, 1),
      serialKey: fc.constantFrom(null, null, 'k'),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      agents: fc.subarray(agents, { minLength: 1 }),
      limit: fc.integer({ min: 1, max: 10 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      attempt: fc.nat(9),
      outputTokens: fc.constantFrom(0, 1, 20, 60, 300),
      status: fc.constantFrom('COMPLETED' as const, 'COMPLETED' as const, 'RELEASED' as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('pass' as const), seconds: fc.constantFrom(0.5, 1, 20, 55, 61) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('limitAgent' as const), agent, limits: limitsOfAgent }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('limitThrottle' as const),
      throttle: fc.constantFrom(...throttles),
      limits: limitsOfThrottle,
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
const story = fc.record({
  throttles: fc.tuple(limitsOfThrottle, limitsOfThrottle),
  agents: fc.tuple(limitsOfAgent, limitsOfAgent, limitsOfAgent),
  steps: fc.array(step, { minLength: 5, maxLength: 40 }),
});

let plane: ControlPlane;
let now = 0;
let running: (Assignment & { workerId: string })[] = [];
/** Who asked for what; a process of its own for each time. */
const asked: { workerId: string; at: number; agents: readonly string[] }[] = [];
beforeAll(async () => {
  plane = await ControlPlane.start();
  await stopClock(plane.database.db, at(0));
  for (const name of throttles) await limitThrottle(name, {});
  for (const name of agents) {
    await plane.agent(name);
    await plane.job(name, [name]);
  }
});
afterAll(async () => {
  // The last story may have lowered a limit below what runs, which is not above a limit that was claimed for.
  await plane.rows(forgetSql);
  await plane.stop();
});

const limitThrottle = (name: string, limits: object): Promise<unknown> =>
  plane.services.configuration.saveThrottle({ name, ...limits }, actor);
const limitAgent = (
  name: string,
  { batches, ...limits }: { batches: boolean; throttles: string[] },
): Promise<void> => plane.agent(name, { ...limits, dispatch: { pull: { batchBySerialKey: batches } } });

const forgetSql = `
delete from runplane.ready_tasks; delete from runplane.serial_tasks; delete from runplane.leases; delete from runplane.attempts;
delete from runplane.usage; delete from runplane.throttle_use; delete from runplane.throttle_heads; delete from runplane.settled_attempts;
delete from runplane.change_log; delete from runplane.tasks; delete from runplane.runs`;

test('however limits come together, claims exceed none, leave nothing that all of them admit, and what waits is told why', async () => {
  const stories = fc.asyncProperty(story, async (told) => {
    await plane.rows(forgetSql);
    running = [];
    for (const [i, name] of throttles.entries()) await limitThrottle(name, told.throttles[i] ?? {});
    for (const [i, name] of agents.entries())
      await limitAgent(name, told.agents[i] ?? { batches: false, throttles: [] });
    for (const one of told.steps) await carryOut(one);
  });
  await fc.assert(stories, { numRuns: count({ test: 25, soak: 2000 }) });
}, 3_600_000);

async function carryOut(one: Step): Promise<void> {
  if (one.do === 'launch') {
    const { agent: job, tasks, estimatedTokens, priority, serialKey } = one;
    for (let n = 0; n < tasks; n++)
      await plane.launch(job, { estimatedTokens, priority, steps: [{ step: job, serialKey }] });
  } else if (one.do === 'claim') await claim(one.agents, one.limit);
  else if (one.do === 'end') await end(one);
  else if (one.do === 'limitAgent') await limitAgent(one.agent, one.limits);
  else if (one.do === 'limitThrottle') await limitThrottle(one.throttle, one.limits);
  else {
    now += one.seconds;
    await stopClock(plane.database.db, at(now));
    // Nothing here is about leases that were lost.
    await plane.rows(
      `update runplane.leases set expires_at = runplane.clock() + interval '1 h', timeout_at = null`,
    );
  }
}

async function end({ attempt, outputTokens, status }: Step & { do: 'end' }): Promise<void> {
  const [assignment] = running.splice(attempt % Math.max(running.length, 1), 1);
  if (!assignment) return;
  const usage = [{ outputTokens }];
  expect(await plane.report(assignment, { status, usage })).toMatchObject({ outcome: 'APPLIED' });
}

async function claim(of: string[], limit: number): Promise<void> {
  const before = await reasons();
  const stateBefore = await throttleStates();
  const workerId = `since ${now}`;
  const claimed = await plane.claim(of, limit, { workerId });
  asked.push({ workerId, at: now, agents: of });
  running.push(...claimed.map((assignment) => ({ ...assignment, workerId })));
  const stateAfter = await throttleStates();

  for (const { taskId, agent: name } of claimed) {
    const reason = before.get(taskId)?.reason;
    if (reason !== 'TOKEN_BUDGET' && reason !== 'SERIAL_KEY') expect(reason, name).toBe('BEHIND_OTHERS');
  }
  const rooms = await plane.rows<{ name: string; room: number | null }>(
    'select a.name, (a.max_concurrent_tasks - (select count(*) from runplane.leases l where l.agent_id = a.id))::int as room from runplane.agents a',
  );
  for (const { name, room } of rooms)
    if (claimed.some((one) => one.agent === name))
      expect(room ?? 0, `agent ${name}`).toBeGreaterThanOrEqual(0);
  for (const state of stateAfter) {
    const under = claimed.filter((one) => state.agents.includes(one.agent)).length;
    if (under === 0) continue;
    expect(state.taskRoom ?? 0, `tasks of ${state.name}`).toBeGreaterThanOrEqual(0);
    expect(state.requestRoom ?? 0, `requests of ${state.name}`).toBeGreaterThanOrEqual(0);
    const tokensBefore = stateBefore.find(({ name }) => name === state.name)?.tokens ?? 0;
    // More than the whole budget runs alone, in an empty window.
    if ((state.tokenRoom ?? 0) < 0)
      expect([tokensBefore, state.reserving], `tokens of ${state.name}`).toEqual([0, 1]);
  }
  if (claimed.length < limit) {
    const left = [...(await reasons()).values()].filter(({ agent: name }) => of.includes(name));
    expect(left.filter(({ reason }) => reason === 'BEHIND_OTHERS')).toEqual([]);
  }
}

/** Why each task waits that does. */
async function reasons(): Promise<Map<string, { reason: WaitingReason; agent: string }>> {
  const tasks = await plane.rows<{ id: string; agent: string }>(
    'select t.id, a.name as agent from runplane.tasks t join runplane.agents a on a.id = t.agent_id where t.finished_at is null',
  );
  const waiting = await createRead(plane.database.db).waiting.ofTasks(tasks.map(({ id }) => id));
  return new Map(
    tasks.flatMap(({ id, agent: name }): [string, { reason: WaitingReason; agent: string }][] => {
      const reason = waiting.get(id)?.reason;
      if (!reason) return [];
      if (reason !== 'NO_WORKER' && reason !== 'BEHIND_OTHERS') return [[id, { reason, agent: name }]];
      expect(reason, `agent ${name}`).toBe(isAskedFor(name) ? 'BEHIND_OTHERS' : 'NO_WORKER');
      return [[id, { reason: 'BEHIND_OTHERS', agent: name }]];
    }),
  );
}

/** Somebody asked for it who was heard of in the last minute, or is at work. */
const isAskedFor = (name: string): boolean =>
  asked.some(
    ({ workerId, at: then, agents: of }) =>
      of.includes(name) && (now - then < 60 || running.some((one) => one.workerId === workerId)),
  );

const throttleStates = () =>
  plane.rows<{
    name: string;
    agents: string[];
    taskRoom: number | null;
    requestRoom: number | null;
    tokenRoom: number | null;
    tokens: number;
    /** How many leases hold tokens. */
    reserving: number;
  }>(`
select t.name, s.task_room::int as "taskRoom", s.request_room::int as "requestRoom", s.token_room::int as "tokenRoom", s.tokens::int as tokens,
       array(select a.name from runplane.agents a join runplane.agent_throttles x on x.agent_id = a.id where x.throttle_id = t.id) as agents,
       (select count(*) from runplane.leases l join runplane.agent_throttles x on x.agent_id = l.agent_id
         where x.throttle_id = t.id and l.estimated_tokens is distinct from 0)::int as reserving
  from runplane.throttles t cross join lateral runplane.throttle_state(array[t.id], runplane.clock()) s`);
