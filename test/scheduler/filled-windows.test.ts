import { describe, expect, it } from 'vitest';
import { transaction } from '../../src/db/transaction.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { bookUsage } from '../../src/result/book-usage.sql.ts';
import { parseUsage } from '../../src/result/parse-usage.ts';
import { apply } from '../operator/manifest/fixture.ts';
import { limitedAgent } from '../support/limited-agent.ts';

const story = limitedAgent();
const { advance, limited, limit, ask, claimOne, done, used, window, claimable } = story;

const beat = (running: Assignment, tokens: number) =>
  story.plane.services.dispatch.extendLeases([
    { ...story.plane.credentials(running), usage: used(tokens, { responseId: `answer of ${tokens}` }) },
  ]);

/** An attempt of an agent that is claimed and done with its usage. */
async function work(agent: string, outputTokens: number, requests: number): Promise<void> {
  await story.plane.launch(agent);
  const [assignment] = (await story.plane.claim([agent], 1)) as [Assignment];
  await done(assignment, used(outputTokens, { requests }));
}

describe('a limit that is switched on', () => {
  it('counts what its agents used in the last minute, until that is over', async () => {
    await limited({}, ['llm', 'other']);
    await work('llm', 7000, 70);
    await advance(20);
    await work('llm', 100, 3);
    await work('other', 30, 2);
    await advance(45);
    await work('llm', 1, 1);
    await limit({ maxTokensPerMinute: 131, maxRequestsPerMinute: 6 });
    expect(await window()).toMatchObject({ tokens: 131, requests: 6 });
    for (let i = 0; i < 9; i++) await ask(1);
    expect(await claimable()).toBe(0);
    await advance(14.9);
    expect(await claimable()).toBe(0);
    await advance(0.1);
    expect(await window()).toMatchObject({ tokens: 1, requests: 1 });
    expect(await claimable()).toBe(5);
  });

  it('counts claims that told of no usage as one request each, and corrects them by what they tell', async () => {
    await limited({});
    for (let i = 0; i < 4; i++) await ask();
    const [a, b, c, d] = (await story.plane.claim(['llm'])) as [
      Assignment,
      Assignment,
      Assignment,
      Assignment,
    ];
    await done(a);
    await done(b, used(1, { requests: 4 }));
    await limit({ maxRequestsPerMinute: 100, maxRequestsPerSecond: 50 });
    expect(await window()).toMatchObject({ requests: 7 });
    await done(c, used(1, { requests: 3 }));
    expect(await window()).toMatchObject({ requests: 9 });
    await done(d, used(1, { requests: 0 }));
    expect(await window()).toMatchObject({ requests: 8 });
    await advance(60);
    expect(await window()).toMatchObject({ requests: 0 });
  });

  it('counts what running attempts used, and reserves only the rest of their estimates', async () => {
    await limited({});
    await ask();
    const running = await claimOne();
    await beat(running, 900);
    await advance(10);
    await beat(running, 100);
    await limit({ maxTokensPerMinute: 10_000 });
    // By its estimate, which is 4,000 before anything is learned.
    expect(await window()).toMatchObject({ tokens: 4000 });
    await advance(50);
    expect(await window()).toMatchObject({ tokens: 3100 });
    await done(running, used(20));
    expect(await window()).toMatchObject({ tokens: 120 });
    expect(await story.plane.rows('select tokens::int, seconds from runplane.settled_attempts')).toEqual([
      { tokens: 1020, seconds: 60 },
    ]);
  });

  it('counts nothing twice that it counted when it was on before, and nothing anew when it changes', async () => {
    await limited({ maxTokensPerMinute: 1000, maxRequestsPerMinute: 10 });
    await work('llm', 100, 2);
    await limit({ maxRequestsPerMinute: 10 });
    await work('llm', 40, 3);
    await limit({ maxTokensPerMinute: 1000 });
    expect(await window()).toMatchObject({ tokens: 140 });
    await limit({ maxTokensPerMinute: 500, maxRequestsPerSecond: 10 });
    expect(await window()).toMatchObject({ tokens: 140, requests: 5 });
    await limit({ maxTokensPerMinute: 600, maxRequestsPerMinute: 10, maxRequestsPerSecond: 10 });
    expect(await window()).toMatchObject({ tokens: 140, requests: 5 });
  });

  it('waits for usage that is being booked', async () => {
    await limited({});
    await ask();
    await claimOne();
    const { db } = story.plane.database;
    let limiting: Promise<unknown> = Promise.resolve();
    await transaction(db, async (tx) => {
      // As heartbeats do.
      const { rows } = await tx.query<{ id: string }>({
        text: 'select attempt_id as id from runplane.leases for update',
      });
      const attemptId = rows[0]?.id ?? '';
      await bookUsage(tx, [{ attemptId, usage: parseUsage(used(5000), 'usage') }]);
      limiting = limit({ maxTokensPerMinute: 10_000 });
      const waits =
        'select from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0 and datname = current_database()';
      await expect.poll(async () => (await story.plane.rows(waits)).length, { interval: 5 }).toBe(1);
    });
    await limiting;
    expect(await window()).toMatchObject({ tokens: 5000 });
  });
});

describe('an agent that joins a throttle', () => {
  it('brings what it used in the last minute', async () => {
    await limited({ maxTokensPerMinute: 1000, maxRequestsPerMinute: 10 });
    await story.plane.agent('other');
    await story.plane.job('other', ['other']);
    await work('llm', 100, 2);
    await work('other', 30, 3);
    await story.plane.agent('other', { throttles: ['api'] });
    expect(await window()).toMatchObject({ tokens: 130, requests: 5 });
    await story.plane.agent('other', { throttles: ['api'], description: 'changed' });
    expect(await window()).toMatchObject({ tokens: 130, requests: 5 });
  });

  it('is counted once where the limit is switched on by the same manifest', async () => {
    await limited({});
    await story.plane.agent('other');
    await story.plane.job('other', ['other']);
    await work('llm', 100, 2);
    await work('other', 30, 3);
    const outcome = await apply(
      story.plane,
      `
throttles:
  - { name: api, maxTokensPerMinute: 1000 }
  - { name: fresh, maxRequestsPerMinute: 10 }
agents:
  - { name: other, dispatch: { pull: {} }, throttles: [api, fresh] }
`,
    );
    expect(outcome.kind).toBe('Applied');
    expect(await window()).toMatchObject({ tokens: 130 });
    expect(
      await story.plane.rows(
        `select s.requests::int from runplane.throttles t
          cross join lateral runplane.throttle_state(array[t.id], runplane.clock()) s where t.name = 'fresh'`,
      ),
    ).toEqual([{ requests: 3 }]);
  });
});

it('a window is filled without reading what is past', async () => {
  await limited({}, ['llm', 'other']);
  await work('other', 1, 1);
  await advance(61);
  const repeat = (times: number, ago: string) =>
    story.plane.rows(
      `insert into runplane.usage (attempt_id, task_id, run_id, agent_id, output_tokens, requests, at)
       select u.attempt_id, u.task_id, u.run_id, u.agent_id, 1, 1, runplane.clock() - interval '${ago}'
         from (select * from runplane.usage order by id limit 1) u, generate_series(1, ${times})`,
    );
  await repeat(30_000, '61 s');
  await work('llm', 500, 5);
  await repeat(8000, '1 s');
  await repeat(3000, '2 min');
  const [throttle] = await story.plane.rows<{ id: string }>(
    'update runplane.throttles set max_tokens_per_minute = 1000000, max_requests_per_minute = 1000000 returning id',
  );
  const read = await transaction(story.plane.database.db, async (tx) => {
    await tx.query({ text: 'select runplane.fill_window($1, null, true, true)', values: [throttle?.id] });
    const { rows } = await tx.query<{ n: number }>({
      text: `select (seq_tup_read + idx_tup_fetch)::int as n from pg_stat_xact_user_tables where relid = 'runplane.usage'::regclass`,
    });
    return rows[0]?.n;
  });
  expect(await window()).toMatchObject({ tokens: 8500, requests: 8005 });
  expect(read).toBeLessThanOrEqual(21_000);
});
