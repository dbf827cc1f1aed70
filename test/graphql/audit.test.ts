import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ControlPlane } from '../support/control-plane.ts';
import { type AuditCase, notAudited, prepareAuditCases } from './audit-cases.ts';
import { Client, schema } from './client.ts';

const mutations = Object.values(schema.getMutationType()?.getFields() ?? {});
const audited = mutations.filter(({ name }) => !notAudited.includes(name));

let plane: ControlPlane;
let client: Client;
let cases: Record<string, AuditCase>;
beforeAll(async () => {
  ({ plane, cases } = await prepareAuditCases());
  client = new Client(plane);
});
afterAll(() => plane.stop());

interface Entry {
  actor: string;
  action: string;
  target: string;
  before: unknown;
  after: unknown;
  reason: string | null;
  requestId: string | null;
}

/** The entries that the work leaves. */
async function entriesOf(work: () => Promise<void>): Promise<Entry[]> {
  const read = () =>
    plane.rows<Entry & { id: string }>(
      `select id, actor, action, target, before, after, reason, request_id as "requestId" from runplane.audit_entries`,
    );
  const known = new Set((await read()).map(({ id }) => id));
  await work();
  return (await read()).filter(({ id }) => !known.has(id)).map(({ id: _, ...entry }) => entry);
}

test('every mutation is audited or left to clients and workers, and each case is of one', () => {
  const names = mutations.map(({ name }) => name);
  expect([...Object.keys(cases), ...notAudited].sort()).toEqual(names.sort());
});

test('docs/operating.md lists the actions that entries can have', () => {
  const text = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8');
  const table = text.split('\n\n').find((part) => part.startsWith('| of ')) ?? '';
  const listed = [...table.matchAll(/`([^`]+)`/g)].map(([, action = '']) => action);
  expect(listed.sort()).toEqual(
    Object.values(cases)
      .map(({ action }) => action)
      .sort(),
  );
});

describe.each(audited)('$name', ({ name, args }) => {
  const takes = (arg: string): boolean => args.some((each) => each.name === arg);
  const reason = 'because of this';
  const call = (given: string, as = client) => {
    const more = takes('reason') ? `, reason: "${reason}"` : '';
    return as.execute(`mutation { result: ${name}(${given}${more}) { __typename } }`);
  };
  const caseOf = (): AuditCase => {
    const found = cases[name];
    if (!found) throw new Error(`The mutation ${name} has no case in audit-cases.ts.`);
    return found;
  };

  test('leaves no entry when it is refused for its scope or only tried', async () => {
    const reader = new Client(plane, ['READ', 'PAYLOAD_READ', 'WORK', 'PUBLISH']);
    const entries = await entriesOf(async () => {
      const { data } = await call(caseOf().changes, reader);
      expect(data.result).toEqual({ __typename: 'Forbidden' });
      if (takes('dryRun')) {
        const tried = await call(`${caseOf().changes} dryRun: true`);
        expect(tried.data.result).toEqual({ __typename: 'BulkSuccess' });
      }
    });
    expect(entries).toEqual([]);
  });

  test('leaves one entry when it changes something, and then none', async () => {
    const { action, target, changes, nothing, isNewEachTime } = caseOf();
    const entries = await entriesOf(async () => {
      const { data } = await call(changes);
      expect(data.result.__typename).toMatch(/Success$/);
    });
    expect(entries).toEqual([
      {
        actor: 'tester',
        requestId: 'request',
        action,
        target: typeof target === 'string' ? target : expect.stringMatching(target),
        before: expect.toSatisfy((before) => before === null || typeof before === 'object'),
        after: expect.toSatisfy((after) => after === null || typeof after === 'object'),
        reason: takes('reason') ? reason : null,
      },
    ]);
    expect(entries[0]?.before).not.toEqual(entries[0]?.after);

    const again = isNewEachTime ? nothing : [changes, ...nothing];
    for (const given of again)
      expect(await entriesOf(async () => void (await call(given))), given).toEqual([]);
  });
});

test('no entry holds a secret', async () => {
  const { createApiToken } = await client.query(
    'mutation { createApiToken(input: { name: "secret", scopes: [READ] }) { ... on CreateApiTokenSuccess { secret } } }',
  );
  const hashes = await plane.rows<{ hash: string }>(
    `select encode(secret_hash, 'hex') as hash from runplane.api_tokens`,
  );
  const log = JSON.stringify(await plane.rows('select * from runplane.audit_entries'));
  expect(log).toContain('"secret"');
  for (const secret of [createApiToken.secret.slice(30), ...hashes.map(({ hash }) => hash)])
    expect(log).not.toContain(secret);
});
