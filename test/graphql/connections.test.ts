import fc from 'fast-check';
import { getNamedType, isObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ControlPlane } from '../support/control-plane.ts';
import { count } from '../support/tier.ts';
import { Client, schema } from './client.ts';
import { type ConnectionCase, prepareConnections, type Row } from './connection-cases.ts';

/** Every list of the schema, as Type.field. */
const lists = Object.values(schema.getTypeMap())
  .filter(isObjectType)
  .flatMap((type) =>
    Object.values(type.getFields())
      .filter((field) => getNamedType(field.type).name.endsWith('Connection'))
      .map((field) => ({ name: `${type.name}.${field.name}`, field })),
  );
const paging = new Set(['first', 'after', 'last', 'before']);

let plane: ControlPlane;
let client: Client;
let cases: Record<string, ConnectionCase>;
beforeAll(async () => {
  ({ plane, cases } = await prepareConnections());
  client = new Client(plane);
});
// Without the invariants: the rows are copies of each other.
afterAll(async () => {
  await plane.services.stop();
  await plane.database.drop();
});

interface PageOf {
  edges: { cursor: string; node: { id: string } }[];
  nodes: { id: string }[];
  pageInfo: {
    hasNextPage: boolean;
    hasPreviousPage: boolean;
    startCursor: string | null;
    endCursor: string | null;
  };
}

const caseOf = (name: string): ConnectionCase => {
  const found = cases[name];
  if (!found) throw new Error(`The list ${name} has no case in connection-cases.ts.`);
  return found;
};
const document = (name: string, args: string): string => {
  const field = name.slice(name.indexOf('.') + 1);
  const page =
    'edges { cursor node { id } } nodes { id } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }';
  return caseOf(name).within(`list: ${field}(${args}) { ${page} }`);
};
async function ask(name: string, args: string): Promise<PageOf> {
  const find = (value: Record<string, unknown>): PageOf =>
    'list' in value ? (value.list as PageOf) : find(Object.values(value)[0] as Record<string, unknown>);
  const page = find(await client.query(document(name, args)));
  expect(page.nodes).toEqual(page.edges.map(({ node }) => node));
  expect(page.pageInfo.startCursor).toBe(page.edges[0]?.cursor ?? null);
  expect(page.pageInfo.endCursor).toBe(page.edges.at(-1)?.cursor ?? null);
  return page;
}
const idsOf = ({ edges }: PageOf): string[] => edges.map(({ node }) => node.id);

/** Goes through a list; between two pages something may happen. */
async function walk(
  name: string,
  backward: boolean,
  size: number,
  between?: (page: number) => Promise<void>,
): Promise<string[]> {
  const found: string[] = [];
  const [amount, beyond] = backward ? ['last', 'before'] : ['first', 'after'];
  let cursor: string | null = null;
  for (let n = 0; ; n++) {
    const page = await ask(name, `${amount}: ${size} ${cursor === null ? '' : `${beyond}: "${cursor}"`}`);
    if (backward) found.unshift(...idsOf(page));
    else found.push(...idsOf(page));
    expect(page.edges.length).toBeLessThanOrEqual(size);
    // Nothing went in between, so what was told to follow is there.
    if (n > 0 && !between) expect(page.edges).not.toEqual([]);
    if (!(backward ? page.pageInfo.hasPreviousPage : page.pageInfo.hasNextPage)) return found;
    expect(page.edges).toHaveLength(size);
    cursor = backward ? page.pageInfo.startCursor : page.pageInfo.endCursor;
    await between?.(n);
  }
}

const scenario = fc.record({
  size: fc.integer({ min: 1, max: 4 }),
  backward: fc.boolean(),
  /** After each page: how many rows come, and which of those that came before go. */
  steps: fc.array(
    fc.record({ come: fc.integer({ min: 0, max: 2 }), go: fc.array(fc.nat(), { maxLength: 2 }) }),
    { minLength: 1, maxLength: 6 },
  ),
});

describe.each(lists)('the list $name', ({ name, field }) => {
  const rows: Row[] = [];
  const fill = async (count = 10): Promise<void> => {
    while (rows.length < count) rows.push(await caseOf(name).add());
  };

  test('is the same forward, backward and as a whole, also while rows come and go', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ size, backward, steps }) => {
        await fill();
        const before = idsOf(await ask(name, 'first: 200'));
        const found = await walk(name, backward, size, async (page) => {
          const step = steps[page];
          if (!step) return;
          for (const index of step.go) await rows.splice(index % rows.length, 1)[0]?.remove();
          for (let i = 0; i < step.come; i++) rows.push(await caseOf(name).add());
        });
        const whole = idsOf(await ask(name, 'first: 200'));
        expect(whole).toEqual(expect.arrayContaining(rows.map(({ id }) => id)));
        expect(new Set(found).size).toBe(found.length);
        // What was there all the time is found, and what is found is in the order of the list.
        const stayed = whole.filter((id) => before.includes(id));
        expect(found.filter((id) => stayed.includes(id))).toEqual(stayed);
        expect(found.filter((id) => whole.includes(id))).toEqual(whole.filter((id) => found.includes(id)));
        expect(await walk(name, false, size)).toEqual(whole);
        expect(await walk(name, true, size)).toEqual(whole);
      }),
      { numRuns: count({ test: 3, soak: 100 }), endOnFailure: true },
    );
  });

  test('goes on after a row that is gone', async () => {
    await fill();
    const { edges } = await ask(name, 'first: 200');
    const [gone] = rows.splice(0, 1);
    const at = edges.findIndex(({ node }) => node.id === gone?.id);
    expect(at).toBeGreaterThanOrEqual(0);
    await gone?.remove();
    const cursor = edges[at]?.cursor ?? '';
    expect(idsOf(await ask(name, `first: 200, after: "${cursor}"`))).toEqual(
      edges.slice(at + 1).map(({ node }) => node.id),
    );
    expect(idsOf(await ask(name, `last: 200, before: "${cursor}"`))).toEqual(
      edges.slice(0, at).map(({ node }) => node.id),
    );
  });

  test('has 50 entries on a page where nobody says how many', async () => {
    await fill(51);
    const whole = idsOf(await ask(name, 'first: 200'));
    expect(whole.length).toBeGreaterThan(50);
    const page = await ask(name, 'first: null');
    expect(idsOf(page)).toEqual(whole.slice(0, 50));
    expect(page.pageInfo.hasNextPage).toBe(true);
    // Other lists may show the same rows, and have to fit one page.
    for (const row of rows.splice(10)) await row.remove();
  });

  test('refuses more than 200 entries, and cursors of other lists, filters and orders', async () => {
    await fill();
    for (const amount of ['first', 'last'])
      expect(await client.refusal(document(name, `${amount}: 201`))).toMatchObject({
        code: 'PAGE_TOO_LARGE',
        field: amount,
      });
    const other = name === 'Query.jobs' ? 'Query.agents' : 'Query.jobs';
    const foreign = (await ask(other, 'first: 1')).pageInfo.endCursor;
    const own = (await ask(name, 'first: 1')).pageInfo.endCursor;
    const invalid = { code: 'INVALID_CURSOR', field: 'after' };
    expect(await client.refusal(document(name, `after: "${foreign}"`))).toMatchObject(invalid);
    expect(await client.refusal(document(name, 'after: "x"'))).toMatchObject(invalid);
    const differs = caseOf(name).other;
    expect(differs === null).toBe(field.args.every((arg) => paging.has(arg.name)));
    if (differs === null) return;
    expect(await client.refusal(document(name, `after: "${own}", ${differs}`))).toMatchObject(invalid);
  });
});
