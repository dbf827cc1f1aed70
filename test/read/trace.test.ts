import { afterAll, beforeAll, expect, test } from 'vitest';
import { newUuid } from '../../src/domain/ids.ts';
import type { Page } from '../../src/read/page.ts';
import { createRead, type Read } from '../../src/read/read.ts';
import { Client } from '../graphql/client.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { createTestDatabase } from '../support/database.ts';
import { pastCorrelationId, pastTraces } from '../support/many-tasks.sql.ts';
import { collectPlans, firstColumns, fullReads, type ShownPlan, showPlans } from '../support/plans.ts';

const growing = new Set([
  'events',
  'runs',
  'tasks',
  'attempts',
  'leases',
  'materializations',
  'task_progress',
  'knowledge_events',
]);
const agents = ['writer'];
const often = 'of many events';

let plane: ControlPlane;
let read: Read;
let plans: ShownPlan[];

beforeAll(async () => {
  const database = await createTestDatabase();
  await showPlans(database);
  plane = await ControlPlane.start({ database });
  plans = collectPlans(plane);
  read = createRead(plane.services.db);
  await plane.agent('writer');
  await plane.job('writer', [{ name: 'only', agent: 'writer' }]);
  for (const statement of pastTraces({ agents, count: 20_000 })) await plane.rows(statement);
  // What runs elsewhere, and what that told.
  await plane.rows(
    `insert into runplane.leases (attempt_id, task_id, run_id, agent_id, claim_seq, number, sequence, worker_id, lease_seconds, started_at, expires_at)
     select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), i, 1, 2, gen_random_uuid(), 60, at, at
       from generate_series(1, 5000) i cross join (select runplane.clock() as at offset 0) now`,
  );
  await plane.rows(`insert into runplane.task_progress (task_id) select task_id from runplane.leases`);
  // One id is so frequent that for the planner any id may have thousands of rows.
  for (const table of ['runs', 'events', 'materializations', 'knowledge_events'])
    await plane.rows(
      `update runplane.${table} set correlation_id = $1 where substr(correlation_id, 11) < '9'`,
      [often],
    );
  await plane.rows('analyze');
});
afterAll(async () => {
  // Without the invariants: the past is not complete.
  await plane.services.stop();
  await plane.database.drop();
});

const lists = ['events', 'runs', 'tasks', 'attempts', 'materializations', 'knowledge'] as const;

const listsOf = (correlationId: string, first: number): Promise<Page<object>[]> =>
  Promise.all(lists.map((list) => read[list].ofCorrelation(correlationId, { first })));

// Behind a pooler no session tells its plans.
test.skipIf(process.env.TEST_POOLER_URL !== undefined)(
  'all of a trace is looked up by key, whatever the planner knows',
  async () => {
    plans.length = 0;
    for (const page of await listsOf(pastCorrelationId(19_999), 200)) expect(page.edges).toHaveLength(1);
    for (const page of await listsOf('there is none', 1)) expect(page.edges).toEqual([]);
    for (const page of await listsOf(often, 200)) expect(page.edges).toHaveLength(200);
    expect(plans.length).toBeGreaterThanOrEqual(3 * lists.length);
    const columns = await firstColumns(plane.database);
    expect([...new Set(plans.flatMap((plan) => fullReads(plan, growing, columns)))]).toEqual([]);
  },
);

test('each list is in the order of time, from page to page, though ids are made by the clocks of many machines', async () => {
  const correlationId = 'skewed';
  const ids = Array.from({ length: 9 }, newUuid);
  // What came first has the last id, and three things at a time came at once.
  await plane.rows(
    `insert into runplane.events (id, topic, correlation_id, source, received_at)
     select id, 'skewed', $2, 'GRAPHQL', timestamptz '2026-01-01' - (n - 1) / 3 * interval '1 minute'
       from unnest($1::uuid[]) with ordinality as i(id, n)`,
    [ids, correlationId],
  );
  const seen: { id: string; receivedAt: Date }[] = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<Read['events']['ofCorrelation']>> = await read.events.ofCorrelation(
      correlationId,
      { first: 2, after },
    );
    seen.push(...page.edges.map(({ node }) => node));
    after = (await page.hasNextPage()) ? (page.edges.at(-1)?.cursor ?? null) : null;
  } while (after !== null);
  const order = [6, 7, 8, 3, 4, 5, 0, 1, 2].map((n) => ids[n]);
  expect(seen.map(({ id }) => id)).toEqual(order);
});

test('one request brings everything that carries the id', async () => {
  const nodes = lists.map((list) => `${list === 'knowledge' ? 'knowledgeRecords' : list} { nodes { id } }`);
  const { trace } = await new Client(plane).query(
    `{ trace(correlationId: "${pastCorrelationId(19_989)}") { correlationId ${nodes.join(' ')} } }`,
  );
  const { correlationId, ...found } = trace as Record<string, { nodes: object[] }>;
  expect(correlationId).toBe(pastCorrelationId(19_989));
  expect(Object.values(found).map((list) => list.nodes.length)).toEqual([1, 1, 1, 1, 1, 1]);
});
