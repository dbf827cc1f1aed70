import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRead, type Read } from '../../src/read/read.ts';
import type { TaskFilter } from '../../src/read/task-filter.ts';
import type { TaskOrder } from '../../src/read/tasks.ts';
import { Client } from '../graphql/client.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { readyTasks } from '../support/many-tasks.sql.ts';
import { waitingOf } from '../support/waiting.ts';

let plane: ControlPlane;
let read: Read;
/** What each task is called here: its job and its step. */
let names: Map<string, string>;
beforeAll(async () => {
  plane = await ControlPlane.start();
  read = createRead(plane.database.db);
  const { configuration } = plane.services;
  await configuration.saveThrottle({ name: 'narrow', maxConcurrentTasks: 0 }, actor);
  await configuration.saveThrottle({ name: 'tokens', maxTokensPerMinute: 1000 }, actor);
  await configuration.saveThrottle({ name: 'asleep' }, actor);
  await configuration.saveQueue({ name: 'stopped', pool: 'core' }, actor);
  const agents = {
    idle: {},
    served: {},
    small: { maxConcurrentTasks: 0 },
    paused: {},
    halted: { queue: 'stopped' },
    narrow: { throttles: ['narrow'] },
    budgeted: { throttles: ['tokens'] },
    held: { throttles: ['asleep', 'tokens'] },
  };
  for (const [name, input] of Object.entries(agents)) {
    await plane.agent(name, input);
    await plane.job(name, [name, { name: 'after', agent: name, dependsOn: [name] }]);
  }
  await configuration.pauseAgent({ name: 'paused' }, actor);
  await configuration.pauseQueue({ name: 'stopped' }, actor);
  await plane.rows(
    `update runplane.throttles set not_before = runplane.clock() + interval '1 hour' where name = 'asleep'`,
  );
  await plane.claim(['served', 'budgeted'], 1);
  for (const agent of Object.keys(agents))
    await plane.launch(agent, { labels: [{ key: 'k', value: agent }] });
  // The first one takes the whole budget; the second fits no more, the third needs nothing.
  await plane.launch('budgeted', { estimatedTokens: 900 });
  await plane.claim(['budgeted'], 1, { workerId: 'other' });
  await plane.launch('budgeted', { estimatedTokens: 0 });
  await plane.launch('served', { availableAt: new Date(Date.now() + 3_600_000) });
  await plane.launch('served', { serialKey: 's' });
  await plane.launch('served', { serialKey: 's' });
  const rows = await plane.rows<{ id: string; name: string }>(
    `select t.id, j.name || '/' || t.step as name from runplane.tasks t join runplane.runs r on r.id = t.run_id join runplane.jobs j on j.id = r.job_id`,
  );
  names = new Map(rows.map(({ id, name }) => [id, name]));
});
afterAll(() => plane.stop());

const list = async (filter: TaskFilter, order: TaskOrder = 'CREATED_ASC') =>
  (await read.tasks.list(filter, order, {})).edges.map(({ node }) => node.id);
const named = async (filter: TaskFilter) => (await list(filter)).map((id) => names.get(id) ?? '').sort();

test('each reason finds what waits for it and nothing else', async () => {
  await waitingOf(plane.database.db, '');
  const found = async (...waitingReasons: string[]) =>
    [...new Set(await named({ waitingReasons, not: { steps: ['after'] } }))].join(' ');
  expect(await found('NO_WORKER')).toBe('idle/idle');
  expect(await found('AGENT_PAUSED')).toBe('paused/paused');
  expect(await found('QUEUE_PAUSED')).toBe('halted/halted');
  expect(await found('CONCURRENCY_LIMIT')).toBe('narrow/narrow small/small');
  expect(await found('PROVIDER_BACKOFF')).toBe('held/held');
  expect(await found('TOKEN_BUDGET')).toBe('budgeted/budgeted');
  expect(await found('BEHIND_OTHERS')).toBe('served/served');
  expect(await named({ waitingReasons: ['SERIAL_KEY'] })).toEqual(['served/served']);
  expect(await named({ waitingReasons: ['NOT_BEFORE'] })).toEqual(['served/served']);
  expect(new Set(await named({ waitingReasons: ['DEPENDENCY'] }))).toEqual(
    new Set(
      ['idle', 'served', 'small', 'paused', 'halted', 'narrow', 'budgeted', 'held'].map((n) => `${n}/after`),
    ),
  );
});

test('reasons go together with other conditions, with not, and with counts', async () => {
  const paused = ['AGENT_PAUSED', 'QUEUE_PAUSED'];
  expect(await named({ waitingReasons: paused, queues: ['stopped'] })).toEqual(['halted/halted']);
  expect(await named({ waitingReasons: paused, not: { waitingReasons: ['QUEUE_PAUSED'] } })).toEqual([
    'paused/paused',
  ]);
  expect(await named({ waitingReasons: paused, labels: [{ key: 'k', values: ['paused'] }] })).toEqual([
    'paused/paused',
  ]);
  expect(await named({ waitingReasons: ['APPROVAL'] })).toEqual([]);
  expect(await named({ waitingReasons: [] })).toEqual([]);
  // A task that runs has no reason, so it is not left out either.
  const others = await named({ not: { waitingReasons: ['DEPENDENCY', 'BUDGET'] } });
  expect(others).toEqual([...names.values()].filter((name) => !name.endsWith('/after')).sort());
  expect(await read.counts.ofTasks({ waitingReasons: ['DEPENDENCY', 'AGENT_PAUSED'] })).toMatchObject({
    blocked: names.size - others.length,
    enqueued: 1,
    processing: 0,
  });
});

const orders: TaskOrder[] = [
  'CREATED_DESC',
  'CREATED_ASC',
  'AVAILABLE_ASC',
  'FINISHED_DESC',
  'PRIORITY_DESC',
];
test.each(orders)('pages go through the list forward and backward, ordered by %s', async (order) => {
  const filter: TaskFilter = { waitingReasons: ['DEPENDENCY', 'BEHIND_OTHERS', 'TOKEN_BUDGET', 'NO_WORKER'] };
  const whole = await list(filter, order);
  expect(whole.length).toBeGreaterThan(10);
  for (const direction of ['first', 'last'] as const) {
    const ids: string[] = [];
    let cursor: string | null = null;
    for (let more = true; more; ) {
      const page: Awaited<ReturnType<Read['tasks']['list']>> = await read.tasks.list(filter, order, {
        [direction]: 3,
        [direction === 'first' ? 'after' : 'before']: cursor,
      });
      const found = page.edges.map(({ node }) => node.id);
      if (direction === 'first') ids.push(...found);
      else ids.unshift(...found);
      cursor = (direction === 'first' ? page.edges.at(-1) : page.edges[0])?.cursor ?? null;
      more = await (direction === 'first' ? page.hasNextPage() : page.hasPreviousPage());
    }
    expect(ids).toEqual(whole);
  }
});

test('a run and operators ask by reason; a stream refuses to', async () => {
  const client = new Client(plane);
  const { runs } = await client.query(
    '{ runs(filter: { jobs: ["halted", "idle"] }) { nodes { job { name } tasks(filter: { waitingReasons: [QUEUE_PAUSED] }) { nodes { step waiting { reason } } } } } }',
  );
  expect(runs.nodes).toEqual([
    { job: { name: 'halted' }, tasks: { nodes: [{ step: 'halted', waiting: { reason: 'QUEUE_PAUSED' } }] } },
    { job: { name: 'idle' }, tasks: { nodes: [] } },
  ]);
  const { cancelTasks } = await client.query(
    'mutation { cancelTasks(filter: { waitingReasons: [NO_WORKER, DEPENDENCY] }, dryRun: true) { ... on BulkSuccess { matched } } }',
  );
  const expected = (await list({ waitingReasons: ['NO_WORKER', 'DEPENDENCY'] })).length;
  expect(cancelTasks).toEqual({ matched: expected });
  for (const filter of ['{ waitingReasons: [NO_WORKER] }', '{ not: { waitingReasons: [NO_WORKER] } }']) {
    const stream = await client.subscribe(`subscription { taskStatusChanged(filter: ${filter}) { cursor } }`);
    expect(stream).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
  }
});

test('where more wait for a reason than are looked up one by one, pages are the same', async () => {
  const many = await ControlPlane.start();
  const questions = createRead(many.database.db);
  for (const agent of ['many', 'few']) {
    await many.agent(agent);
    await many.job(agent, [{ name: 'only', agent }]);
  }
  await many.services.configuration.pauseAgent({ name: 'few' }, actor);
  for (const [agents, amount] of [
    [['many'], 10_050],
    [['few'], 30],
  ] as const)
    for (const statement of readyTasks({ agents, count: amount, priority: 0 })) await many.rows(statement);
  const ids = await many.rows<{ id: string; name: string }>(
    'select t.id, a.name from runplane.tasks t join runplane.agents a on a.id = t.agent_id order by t.id desc',
  );
  const newest = (name: string) => ids.flatMap((task) => (task.name === name ? task.id : [])).slice(0, 20);
  for (const order of ['CREATED_DESC', 'FINISHED_DESC'] as const)
    for (const [reason, agent] of [
      ['NO_WORKER', 'many'],
      ['AGENT_PAUSED', 'few'],
    ] as const) {
      const page = await questions.tasks.list({ waitingReasons: [reason] }, order, { first: 20 });
      expect(page.edges.map(({ node }) => node.id)).toEqual(newest(agent));
      expect(await page.hasNextPage()).toBe(true);
    }
  expect(await questions.counts.ofTasks({ waitingReasons: ['NO_WORKER'] })).toMatchObject({
    enqueued: 10_050,
  });
  await many.stop();
});
