import { afterEach, beforeEach, expect, test } from 'vitest';
import { agents, definitions } from '../../src/knowledge/definitions.ts';
import { createKnowledgeHandlers, installKnowledge } from '../../src/knowledge/index.ts';
import { createConfiguration } from '../../src/operator/configuration.ts';
import { applyManifest } from '../../src/operator/manifest/apply.ts';
import { actor } from '../support/control-plane.ts';
import { createTestDatabase, openDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

const jobs = definitions.map(({ job }) => job);
const routes = definitions.map(({ route }) => route);

const configurationOf = (db: TestDatabase['db']) => createConfiguration({ db, onCommit: () => {} });

const versions = async () => {
  const { rows } = await database.db.query<{ name: string; version: number }>({
    text: `select 'agent ' || name as name, version from runplane.agents union all select 'job ' || name, version from runplane.jobs
           union all select 'route ' || name, version from runplane.routes`,
  });
  return new Map(rows.map(({ name, version }) => [name, version]));
};
const audited = async () => {
  const { rows } = await database.db.query<{ count: number }>({
    text: 'select count(*)::int as count from runplane.audit_entries',
  });
  return rows[0]?.count;
};

const all = [
  ...agents.map(({ name }) => `agent ${name}`),
  ...jobs.map(({ name }) => `job ${name}`),
  ...routes.map(({ name }) => `route ${name}`),
];

test('is installed once, however many servers start at a time and afterwards', async () => {
  const other = openDatabase(database.url);
  const servers = [database.db, other, database.db, other];
  await Promise.all(servers.map((db) => installKnowledge({ configuration: configurationOf(db) })));
  await installKnowledge({ configuration: configurationOf(other) });
  await other.close();
  const found = await versions();
  expect([...found.keys()].sort()).toEqual([...all].sort());
  expect([...found.values()].every((version) => version === 1)).toBe(true);
  expect(await audited()).toBe(all.length);
});

test('what an operator changed stays as it is', async () => {
  const configuration = configurationOf(database.db);
  await installKnowledge({ configuration });
  const [agent] = agents;
  const [route] = routes;
  if (!agent || !route) throw new Error('nothing is installed');
  await configuration.saveAgent({ ...agent, maxConcurrentTasks: 1 }, actor);
  await configuration.saveRoute({ ...route, enabled: false }, actor);
  await installKnowledge({ configuration });
  const found = await versions();
  expect([found.get(`agent ${agent.name}`), found.get(`route ${route.name}`)]).toEqual([2, 2]);
});

test('what a manifest without it switched off is neither enabled nor created again', async () => {
  const configuration = configurationOf(database.db);
  await installKnowledge({ configuration });
  const pruned = await applyManifest({ db: database.db, onCommit: () => {} }, [], {
    actor,
    prune: true,
    dryRun: false,
    misshapen: [],
    refused: false,
  });
  expect(
    pruned.kind === 'Applied' &&
      pruned.changes.map(({ action, noun, name }) => `${action} ${noun} ${name}`).sort(),
  ).toEqual(
    all.map((object) => (object.startsWith('route') ? `delete ${object}` : `disable ${object}`)).sort(),
  );
  const before = await versions();
  await installKnowledge({ configuration });
  expect(await versions()).toEqual(before);
  const { rows } = await database.db.query({ text: 'select name from runplane.jobs where enabled' });
  expect(rows).toEqual([]);
});

test('every agent has its handler', () => {
  const handlers = createKnowledgeHandlers(() => database.db);
  expect(new Set(agents.map(({ dispatch }) => dispatch.inline?.handler))).toEqual(new Set(handlers.keys()));
});
