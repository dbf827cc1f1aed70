import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createConfiguration } from '../../src/operator/configuration.ts';
import { openDatabase } from '../support/database.ts';
import { forgetAudit } from '../support/forget-audit.ts';
import { actor, inputs, kinds, type Operator, saveAny, startOperator } from './fixture.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let operator: Operator;
beforeAll(async () => {
  operator = await startOperator();
});
afterAll(() => operator.close());
beforeEach(async () => {
  const { db } = operator.database;
  for (const text of [
    "delete from runplane.routes where name = 'uploads'",
    "delete from runplane.job_versions where job_id in (select id from runplane.jobs where name = 'digest')",
    "delete from runplane.jobs where name = 'digest'",
    'delete from runplane.agent_throttles',
    "delete from runplane.agents where name = 'summariser'",
    "delete from runplane.throttles where name = 'anthropic'",
    "delete from runplane.queues where name = 'urgent'",
    "delete from runplane.pools where name = 'fast'",
  ]) {
    await db.query({ text });
  }
  await forgetAudit(db);
});

describe.each(kinds)('saving a %s', (kind) => {
  const [first, second] = inputs[kind];
  const { name } = first;
  const success = `Save${kind[0]?.toUpperCase()}${kind.slice(1)}Success`;
  const save = (input: object) => saveAny(operator.configuration, kind, input);

  it('creates version 1 with one audit entry', async () => {
    const commits = operator.commits();
    expect(await save(first)).toEqual({ kind: success, id: expect.stringMatching(uuid), name, version: 1 });
    expect(operator.commits()).toBe(commits + 1);
    expect(await operator.audit()).toEqual([
      {
        actor: 'ann',
        action: `${kind}.save`,
        target: name,
        before: null,
        after: expect.objectContaining({ version: 1 }),
        reason: null,
        requestId: 'req-1',
      },
    ]);
  });

  it('changes nothing when repeated', async () => {
    const created = await save(first);
    const row = await operator.row(`${kind}s`, name);
    const commits = operator.commits();
    expect(await save(first)).toEqual(created);
    expect(await operator.row(`${kind}s`, name)).toEqual(row);
    expect(await operator.audit()).toHaveLength(1);
    expect(operator.commits()).toBe(commits);
  });

  it('raises the version by one and leaves one audit entry when something changed', async () => {
    const created = await save(first);
    expect(await save(second)).toEqual({ ...created, version: 2 });
    expect(await save(second)).toEqual({ ...created, version: 2 });
    const [creation, change, ...others] = await operator.audit();
    expect(others).toEqual([]);
    expect(change).toMatchObject({
      action: `${kind}.save`,
      target: name,
      before: creation?.after,
      after: { version: 2 },
    });
  });

  it('replaces the whole object', async () => {
    await save(second);
    const [fresh] = await operator.audit();
    await save(first);
    await save(second);
    const [, , replaced] = await operator.audit();
    expect(replaced?.after).toEqual({ ...fresh?.after, version: 3 });
  });

  it('refuses another ifVersion and changes nothing', async () => {
    expect(await save({ ...first, ifVersion: 1 })).toMatchObject({
      kind: 'IllegalState',
      status: 'version 0',
    });
    expect(await save({ ...first, ifVersion: 0 })).toMatchObject({ kind: success, version: 1 });
    expect(await save({ ...second, ifVersion: 2 })).toMatchObject({
      kind: 'IllegalState',
      status: 'version 1',
      message: expect.stringContaining(JSON.stringify(name)),
    });
    expect(await save({ ...second, ifVersion: 1 })).toMatchObject({ kind: success, version: 2 });
    expect(await operator.audit()).toHaveLength(2);
  });

  it.each([
    ['blank', ' '],
    ['too long', 'n'.repeat(201)],
    ['with a control character', 'a\nb'],
    ['with a lone surrogate', 'a\ud800'],
  ])('refuses a name that is %s', async (_, bad) => {
    expect(await save({ ...first, name: bad })).toMatchObject({ kind: 'InvalidInput', field: 'name' });
  });

  it.each([-1, 1.5, 2 ** 31])('refuses ifVersion %d', async (ifVersion) => {
    expect(await save({ ...first, ifVersion })).toMatchObject({ kind: 'InvalidInput', field: 'ifVersion' });
  });

  it('saves the same new name many times at once', async () => {
    const other = openDatabase(operator.database.url);
    const elsewhere = createConfiguration({ db: other, onCommit: () => {} });
    try {
      const saved = await Promise.all(
        Array.from({ length: 16 }, (_, i) =>
          saveAny(i % 2 ? operator.configuration : elsewhere, kind, first),
        ),
      );
      expect(new Set(saved.map((outcome) => JSON.stringify(outcome))).size).toBe(1);
      expect(saved[0]).toMatchObject({ kind: success, version: 1 });
      expect(await operator.audit()).toHaveLength(1);

      const mixed = await Promise.all(
        Array.from({ length: 16 }, (_, i) =>
          saveAny(i % 2 ? operator.configuration : elsewhere, kind, i % 3 ? first : second),
        ),
      );
      expect(mixed.every((outcome) => outcome.kind === success)).toBe(true);
      const row = await operator.row(`${kind}s`, name);
      const entries = await operator.audit();
      expect(entries).toHaveLength(Number(row?.version));
      for (const [i, entry] of entries.entries()) {
        expect(entry.after).toMatchObject({ version: i + 1 });
        expect(entry.before).toEqual(entries[i - 1]?.after ?? null);
      }
    } finally {
      await other.close();
    }
  });

  it('lets only one of many changes with the same ifVersion through', async () => {
    await save(first);
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => save({ ...second, ifVersion: 1 })));
    expect(outcomes.map((outcome) => outcome.kind).sort()).toEqual([
      ...Array<string>(7).fill('IllegalState'),
      success,
    ]);
  });
});

it('normalises names, so that one name is one object', async () => {
  const { configuration } = operator;
  const composed = await configuration.saveThrottle({ name: 'caf\u00e9' }, actor);
  expect(await configuration.saveThrottle({ name: 'cafe\u0301' }, actor)).toEqual(composed);
});
