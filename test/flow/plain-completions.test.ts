import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import { completeAttempts } from '../../src/result/complete-attempts.sql.ts';
import { parseReport } from '../../src/result/parse-result.ts';
import type { ReportResultInput } from '../../src/result/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { decidingRecorder } from '../support/silent-observer.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a', { computeCostPerHour: '3.6', maxConcurrentTasks: 100 });
});
afterEach(() => plane.stop());

type Result = Omit<ReportResultInput, 'attemptId' | 'leaseToken'>;
const completed: Result = { status: 'COMPLETED', output: { ok: true } };

/** By the statement alone; answers how many of them it completed. */
async function completePlainly(assignments: readonly Assignment[], result = completed): Promise<number> {
  const reports = assignments.map(({ attemptId }) => parseReport(result, attemptId));
  return (await completeAttempts(plane.database.db, reports)).size;
}

/** All that is stored of a run, without ids, places and times. */
async function stored(runId: string): Promise<unknown> {
  const [{ all }] = (await plane.rows<{ all: unknown }>(
    `select json_build_object(
       'run', (select to_jsonb(r) - '{id,job_id,correlation_id,created_at,available_at,started_at,finished_at}'::text[] || jsonb_build_object('over', r.finished_at is not null)
                 from runplane.runs r where r.id = $1),
       'tasks', (select json_agg(to_jsonb(t) - '{id,run_id,agent_id,rank,turn,available_at,created_at,finished_at}'::text[] || jsonb_build_object('over', t.finished_at is not null) order by t.step)
                   from runplane.tasks t where t.run_id = $1),
       'attempts', (select json_agg(to_jsonb(a) - '{id,task_id,run_id,started_at,finished_at,compute_cost}'::text[] || jsonb_build_object('costs', a.compute_cost > 0, 'exactly', a.compute_cost = round(3.6 * extract(epoch from a.finished_at - a.started_at) / 3600, 12)) order by a.task_id)
                      from runplane.attempts a where a.run_id = $1),
       'usage', (select json_agg(to_jsonb(u) - '{id,attempt_id,task_id,run_id,agent_id,at,response_id}'::text[] order by u.id) from runplane.usage u where u.run_id = $1),
       'learned', (select json_agg(to_jsonb(s) - '{id,attempt_id,agent_id,seconds}'::text[] || jsonb_build_object('of', s.attempt_id = a.id, 'exactly', s.seconds = extract(epoch from a.finished_at - a.started_at)) order by s.tokens, s.expected_tokens)
                     from runplane.settled_attempts s left join runplane.attempts a on a.id = s.attempt_id left join runplane.tasks t on t.id = a.task_id where t.run_id = $1),
       'progress', (select count(*) from runplane.task_progress p join runplane.tasks t on t.id = p.task_id where t.run_id = $1),
       'leases', (select count(*) from runplane.leases l where l.run_id = $1),
       'changes', (select json_agg(json_build_array(c.task_id is null, c.sequence, c.from_status, c.to_status, c.attempt_id is null, c.attempt_number, c.error_code, c.reason)
                                   order by c.task_id nulls first, c.sequence) from runplane.change_log c where c.run_id = $1)) as all`,
    [runId],
  )) as [{ all: unknown }];
  return all;
}

describe('what a completion leaves', () => {
  test.each<[string, Result]>([
    ['an output', completed],
    ['nothing', { status: 'COMPLETED' }],
    [
      'all that a report may say',
      {
        status: 'COMPLETED',
        output: { text: 'a \u0000 b' },
        confidence: 0.75,
        traceId: 'a'.repeat(32),
        externalRunId: 'external',
        usage: [
          { model: 'm', inputTokens: 10, outputTokens: 2, cost: '0.25', raw: { id: 1 } },
          { provider: 'p', cacheReadTokens: 5, requests: 3 },
        ],
      },
    ],
  ])('is the same whether it is decided in the statement or before: %s', async (_, result) => {
    await plane.job('one', ['a']);
    await plane.job('two', [
      { name: 'x', agent: 'a' },
      { name: 'y', agent: 'a' },
    ]);
    const outcomes: unknown[] = [];
    for (const results of [plane.services.results, decidingRecorder(plane)]) {
      const runs = [await plane.launch('one'), await plane.launch('two'), await plane.launch('two')];
      const assignments = await plane.claim(['a']);
      await plane.services.dispatch.extendLeases(
        assignments.map((one) => ({ ...plane.credentials(one), checkpoint: { page: 1 } })),
      );
      // Of the last run one task goes on.
      const last = assignments.filter(({ runId }) => runId === runs[2])[1];
      const inputs = assignments
        .filter((one) => one !== last)
        .map((one) => ({ ...plane.credentials(one), ...result }));
      const answers = await results.reportResults(inputs);
      const again = await results.reportResults(inputs);
      outcomes.push([
        answers.map((answer) => ({ ...answer, taskId: '', attemptId: '' })),
        again.map((answer) => ({ ...answer, taskId: '', attemptId: '' })),
        ...(await Promise.all(runs.map(stored))),
      ]);
      if (last) await plane.report(last, completed);
      expect(await Promise.all(runs.map((run) => plane.run(run)))).toEqual(
        runs.map(() => ({ status: 'COMPLETED', openTasks: 0 })),
      );
    }
    expect(outcomes[0]).toEqual(outcomes[1]);
  });
});

test('of two results of one attempt in a request the first stands, whichever way each is recorded', async () => {
  await plane.job('one', ['a']);
  const failed: Result = { status: 'FAILED', error: { code: 'BAD', kind: 'PERMANENT' } };
  for (const [first, second] of [
    [completed, failed],
    [failed, completed],
  ] as const) {
    for (let i = 0; i < 10; i++) {
      await plane.launch('one');
      const [one] = (await plane.claim(['a'])) as [Assignment];
      const inputs = [first, second].map((result) => ({ ...plane.credentials(one), ...result }));
      expect(await plane.services.results.reportResults(inputs)).toMatchObject([
        { outcome: 'APPLIED', taskStatus: first.status },
        { kind: 'ResultConflict' },
      ]);
    }
  }
});

describe('what is learned from a completion', () => {
  const told = (n: number) => [{ outputTokens: 100, responseId: `told-${n}` }];

  test.each<[string, (n: number) => Result, number]>([
    ['told by heartbeats alone', () => completed, 100],
    ['told by heartbeats and again with the result', (n) => ({ ...completed, usage: told(n) }), 100],
    ['told by both', () => ({ ...completed, usage: [{ inputTokens: 11 }] }), 111],
  ])('is the same, once an attempt, of usage that is %s', async (_, result, tokens) => {
    const { configuration, dispatch, results: plain } = plane.services;
    await configuration.saveThrottle({ name: 'budget', maxTokensPerMinute: 1_000_000 }, actor);
    await plane.agent('a', { throttles: ['budget'] });
    await plane.job('one', ['a']);
    const learned: unknown[] = [];
    for (const [n, results] of [plain, decidingRecorder(plane)].entries()) {
      const run = await plane.launch('one', { estimatedTokens: 50 });
      const [one] = (await plane.claim(['a'])) as [Assignment];
      await dispatch.extendLeases([{ ...plane.credentials(one), usage: told(n) }]);
      await results.reportResults([{ ...plane.credentials(one), ...result(n) }]);
      learned.push(((await stored(run)) as { learned: unknown }).learned);
    }
    const once = [{ tokens, expected_tokens: 50, of: true, exactly: true }];
    expect(learned).toEqual([once, once]);
  });
});

describe('the statement leaves alone', () => {
  test('what has no lease, and completes the others', async () => {
    await plane.job('one', ['a']);
    for (let i = 0; i < 3; i++) await plane.launch('one');
    const assignments = await plane.claim(['a']);
    await plane.report(assignments[1] as Assignment, { status: 'RELEASED' });
    expect(await completePlainly(assignments)).toBe(2);
    expect(await completePlainly(assignments)).toBe(0);
  });

  test('tasks in runs where others wait for them', async () => {
    await plane.job('pair', ['a', { name: 'b', agent: 'a', dependsOn: ['a'] }]);
    await plane.job('one', ['a']);
    const run = await plane.launch('pair');
    await plane.launch('one');
    const first = await plane.claim(['a']);
    expect(first.map(({ runId }) => runId === run)).toEqual([true, false]);
    expect(await completePlainly(first)).toBe(1);
    expect(await completePlainly(first)).toBe(0);
    await plane.report(first[0] as Assignment, completed);
    // Another task ended before, whose end counts for the run.
    const second = await plane.claim(['a']);
    expect(await completePlainly(second)).toBe(0);
    await plane.report(second[0] as Assignment, completed);
    expect(await plane.run(run)).toEqual({ status: 'COMPLETED', openTasks: 0 });
  });

  test('the last task of a run of which another one failed', async () => {
    await plane.job('two', [
      { name: 'x', agent: 'a' },
      { name: 'y', agent: 'a' },
    ]);
    const run = await plane.launch('two');
    const [x, y] = (await plane.claim(['a'])) as [Assignment, Assignment];
    await plane.report(x, { status: 'FAILED', error: { code: 'BAD', kind: 'PERMANENT' } });
    expect(await completePlainly([y])).toBe(0);
    await plane.report(y, completed);
    expect(await plane.run(run)).toEqual({ status: 'FAILED', openTasks: 0 });
  });

  test('tasks of a serial key, which the next one waits for', async () => {
    await plane.job('keyed', ['a']);
    for (let i = 0; i < 2; i++) await plane.launch('keyed', { serialKey: 'k' });
    const first = await plane.claim(['a']);
    expect(first).toHaveLength(1);
    expect(await completePlainly(first)).toBe(0);
    await plane.report(first[0] as Assignment, completed);
    expect(await plane.claim(['a'])).toHaveLength(1);
  });

  test('runs that are cancelled, and those in which tasks were spawned', async () => {
    await plane.job('one', ['a']);
    const cancelled = await plane.launch('one');
    const assignments = await plane.claim(['a']);
    await plane.rows('update runplane.runs set cancel_requested_at = runplane.clock() where id = $1', [
      cancelled,
    ]);
    expect(await completePlainly(assignments)).toBe(0);
    await plane.report(assignments[0] as Assignment, completed);

    const spawning = await plane.launch('one');
    const [parent] = (await plane.claim(['a'])) as [Assignment];
    const child = { step: 'child', agent: 'a' };
    await plane.report(parent, { ...completed, spawn: [child, child] });
    await plane.launch('one');
    const [first, second, other] = (await plane.claim(['a'])) as [Assignment, Assignment, Assignment];
    expect(await completePlainly([first, other])).toBe(1);
    await plane.services.results.reportResults(
      [first, second].map((one) => ({ ...plane.credentials(one), ...completed })),
    );
    expect(await plane.run(spawning)).toEqual({ status: 'COMPLETED', openTasks: 0 });
  });
});
