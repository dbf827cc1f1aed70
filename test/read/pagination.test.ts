import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Page, PageArgs } from '../../src/read/page.ts';
import { createRead, type Read } from '../../src/read/read.ts';
import type { TaskFilter } from '../../src/read/task-filter.ts';
import type { TaskOrder, TaskRow } from '../../src/read/tasks.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
let read: Read;

beforeAll(async () => {
  plane = await ControlPlane.start();
  read = createRead(plane.database.db);
  await plane.agent('a', { computeCostPerHour: '3.6' });
  await plane.job('one', ['a']);
  const soon = new Date(Date.now() + 3_600_000);
  await plane.services.intake.launchRuns(
    Array.from({ length: 60 }, (_, i) => ({
      job: 'one',
      priority: i % 3,
      ...(i % 4 === 0 && { availableAt: soon }),
      customer: i % 2 === 0 ? 'even' : 'odd',
    })),
  );
  for (const [i, task] of (await plane.claim(['a'], 30)).entries()) {
    await plane.report(task, { status: 'COMPLETED', usage: [{ cost: `0.${i % 5}` }] });
  }
});
afterAll(() => plane.stop());

type Ask = (page: PageArgs) => Promise<Page<TaskRow>>;
const ids = (page: Page<TaskRow>): string[] => page.edges.map(({ node }) => node.id);

async function walk(
  ask: Ask,
  way: 'forward' | 'backward',
  size: number,
  between = async () => {},
): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await ask(
      way === 'forward' ? { first: size, after: cursor } : { last: size, before: cursor },
    );
    await between();
    if (way === 'forward') found.push(...ids(page));
    else found.unshift(...ids(page));
    const more = way === 'forward' ? await page.hasNextPage() : await page.hasPreviousPage();
    expect(await (way === 'forward' ? page.hasPreviousPage() : page.hasNextPage())).toBe(
      cursor !== undefined,
    );
    if (!more) return found;
    cursor = (way === 'forward' ? page.edges.at(-1) : page.edges[0])?.cursor;
  }
}

const terminal: TaskFilter = { statuses: ['COMPLETED'] };
const orders: [TaskOrder, TaskFilter, (a: TaskRow, b: TaskRow) => number][] = [
  ['CREATED_DESC', {}, (a, b) => (a.id < b.id ? 1 : -1)],
  ['CREATED_ASC', { customers: ['odd'] }, (a, b) => (a.id < b.id ? -1 : 1)],
  [
    'AVAILABLE_ASC',
    {},
    (a, b) => a.availableAt.getTime() - b.availableAt.getTime() || (a.id < b.id ? -1 : 1),
  ],
  ['PRIORITY_DESC', {}, (a, b) => b.priority - a.priority || (a.id < b.id ? -1 : 1)],
  [
    'FINISHED_DESC',
    {},
    (a, b) => (b.finishedAt?.getTime() ?? 0) - (a.finishedAt?.getTime() ?? 0) || (a.id < b.id ? 1 : -1),
  ],
];

describe('pages of tasks', () => {
  test.each(orders)(
    'in order %s are the same forward, backward and as a whole',
    async (order, filter, compare) => {
      const ask: Ask = (page) => read.tasks.list(filter, order, page);
      const whole = (await ask({ first: 200 })).edges.map(({ node }) => node);
      expect(whole.map(({ id }) => id)).toEqual([...whole].sort(compare).map(({ id }) => id));
      expect(whole).toHaveLength(filter.customers ? 30 : 60);
      for (const size of [1, 7, 60]) {
        expect(await walk(ask, 'forward', size)).toEqual(whole.map(({ id }) => id));
        expect(await walk(ask, 'backward', size)).toEqual(whole.map(({ id }) => id));
      }
    },
  );

  test.each(['DURATION_DESC', 'COST_DESC'] as const)(
    'in order %s need a filter to terminal statuses',
    async (order) => {
      await expect(read.tasks.list({}, order, {})).rejects.toMatchObject({
        code: 'BAD_USER_INPUT',
        field: 'orderBy',
      });
      const open = read.tasks.list({ statuses: ['COMPLETED', 'ENQUEUED'] }, order, {});
      await expect(open).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
      const ask: Ask = (page) => read.tasks.list(terminal, order, page);
      const whole = ids(await ask({ first: 200 }));
      expect(whole).toHaveLength(30);
      expect(await walk(ask, 'forward', 7)).toEqual(whole);
      expect(await walk(ask, 'backward', 7)).toEqual(whole);
    },
  );

  test('in order COST_DESC start with the most expensive', async () => {
    const page = await read.tasks.list(terminal, 'COST_DESC', {});
    const totals = await read.totals.ofTasks(ids(page));
    const costs = ids(page).map((id) => Number(totals.get(id)?.totalCost));
    expect(costs).toEqual([...costs].sort((a, b) => b - a));
    expect(costs[0]).toBeGreaterThanOrEqual(0.4);
  });

  test('neither skip nor repeat a task while others come', async () => {
    const filter: TaskFilter = { customers: ['even'] };
    const ask: Ask = (page) => read.tasks.list(filter, 'CREATED_DESC', page);
    const before = ids(await ask({ first: 200 }));
    const launch = async (): Promise<void> =>
      void (await plane.launch('one', { customer: 'even', availableAt: new Date(Date.now() + 3_600_000) }));
    expect(await walk(ask, 'forward', 7, launch)).toEqual(before);
    const seen = await walk(ask, 'backward', 7, launch);
    expect(seen.slice(-before.length)).toEqual(before);
    expect(new Set(seen).size).toBe(seen.length);
  });

  test.each(['AVAILABLE_ASC', 'FINISHED_DESC', 'PRIORITY_DESC', 'CREATED_DESC'] as const)(
    'in order %s refuse what somebody made of a cursor, or go on from there',
    async (order) => {
      const { edges } = await read.tasks.list({}, order, { first: 1 });
      const parts = JSON.parse(Buffer.from(edges[0]?.cursor ?? '', 'base64url').toString()) as unknown[];
      for (const forged of ['-999999999999999', '999999999999999', '-1', '0', '1e5', '', 'x', 1, null]) {
        const after = Buffer.from(JSON.stringify(parts.with(2, forged))).toString('base64url');
        const page = read.tasks.list({}, order, { first: 1, after });
        await page.then(
          ({ edges: found }) => expect(found.length).toBeLessThanOrEqual(1),
          (error: unknown) => expect(error).toMatchObject({ code: 'INVALID_CURSOR' }),
        );
      }
    },
  );

  test('between two cursors hold what lies between them', async () => {
    const ask: Ask = (page) => read.tasks.list({ customers: ['odd'] }, 'CREATED_ASC', page);
    const { edges } = await ask({ first: 20 });
    const between = await ask({ first: 50, after: edges[4]?.cursor, before: edges[10]?.cursor });
    expect(between.edges.map(({ node }) => node.id)).toEqual(edges.slice(5, 10).map(({ node }) => node.id));
    expect([await between.hasPreviousPage(), await between.hasNextPage()]).toEqual([true, true]);
  });

  test('of children are read together and are the same as one by one', async () => {
    const runs = (await read.runs.list({}, { first: 5 })).edges.map(({ node }) => node.id);
    const together = await read.tasks.ofRuns(runs, {}, { first: 1 });
    for (const run of runs) {
      const alone = await read.tasks.ofRuns([run], {}, { first: 1 });
      expect(together.get(run)?.edges).toEqual(alone.get(run)?.edges);
      expect(together.get(run)?.edges).toHaveLength(1);
    }
  });
});

describe('cursors', () => {
  const page = () => read.tasks.list({ customers: ['odd'] }, 'CREATED_DESC', { first: 3 });

  test('are refused with another filter, order or list, and when they are none', async () => {
    const after = (await page()).edges[0]?.cursor;
    const invalid = { code: 'INVALID_CURSOR', field: 'after' };
    await expect(read.tasks.list({ customers: ['even'] }, 'CREATED_DESC', { after })).rejects.toMatchObject(
      invalid,
    );
    await expect(read.tasks.list({ customers: ['odd'] }, 'CREATED_ASC', { after })).rejects.toMatchObject(
      invalid,
    );
    await expect(read.runs.list({}, { after })).rejects.toMatchObject(invalid);
    await expect(
      read.tasks.list({ customers: ['odd'] }, 'CREATED_DESC', { after: 'abc' }),
    ).rejects.toMatchObject(invalid);
  });

  test('of a child list are refused for another parent', async () => {
    const [a = '', b = ''] = (await read.runs.list({}, { first: 2 })).edges.map(({ node }) => node.id);
    const after = (await read.tasks.ofRuns([a], {}, {})).get(a)?.edges[0]?.cursor;
    await expect(read.tasks.ofRuns([b], {}, { after })).rejects.toMatchObject({ code: 'INVALID_CURSOR' });
    expect((await read.tasks.ofRuns([a], {}, { after })).get(a)?.edges).toEqual([]);
  });

  test('with a null in place of an absent field are of the same filter', async () => {
    const after = (await page()).edges[0]?.cursor;
    const rest = await read.tasks.list({ customers: ['odd'], steps: null }, 'CREATED_DESC', {
      after,
      first: 2,
    });
    expect(ids(rest)).toEqual(ids(await page()).slice(1));
  });

  test('work though their row is gone', async () => {
    await plane.services.configuration.saveRoute(
      { name: 'r1', topic: 'a.*', job: 'one' },
      { name: 't', requestId: null },
    );
    await plane.services.configuration.saveRoute(
      { name: 'r2', topic: 'a.>', job: 'one' },
      { name: 't', requestId: null },
    );
    const first = await read.routes.list('a.b', { first: 1 });
    await plane.services.configuration.deleteRoute({ name: 'r1' }, { name: 't', requestId: null });
    const rest = await read.routes.list('a.b', { after: first.edges[0]?.cursor });
    expect(rest.edges.map(({ node }) => node.name)).toEqual(['r2']);
    expect(await rest.hasPreviousPage()).toBe(false);
    expect((await read.routes.list('a.b.c', {})).edges.map(({ node }) => node.name)).toEqual(['r2']);
    expect((await read.routes.list('b', {})).edges).toEqual([]);
  });
});

test.each([
  [{ first: 201 }, { code: 'PAGE_TOO_LARGE', field: 'first' }],
  [{ last: 500 }, { code: 'PAGE_TOO_LARGE', field: 'last' }],
  [{ first: 0 }, { code: 'BAD_USER_INPUT', field: 'first' }],
  [
    { first: 1, last: 1 },
    { code: 'BAD_USER_INPUT', field: 'last' },
  ],
])('a page of %j is refused', async (page, error) => {
  await expect(read.tasks.list({}, 'CREATED_DESC', page)).rejects.toMatchObject(error);
});
