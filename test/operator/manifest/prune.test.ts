import { afterAll, beforeAll, expect, test } from 'vitest';
import { ControlPlane } from '../../support/control-plane.ts';
import { forgetAudit } from '../../support/forget-audit.ts';
import { ann, apply, auditOf, configurationOf, told } from './fixture.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await ControlPlane.start();
  await apply(
    plane,
    `
throttles: [{ name: t }]
pools: [{ name: p, slotsPerReplica: 1 }]
queues: [{ name: kept, pool: p }, { name: used, pool: p }, { name: left, pool: p }]
agents:
  - { name: kept, dispatch: { pull: {} }, queue: used }
  - { name: used, dispatch: { pull: {} } }
  - { name: left, dispatch: { pull: {} }, throttles: [t] }
jobs:
  - { name: kept, steps: [{ name: a, agent: kept }] }
  - { name: left, steps: [{ name: a, agent: left }] }
  - { name: off, enabled: false, steps: [{ name: a, agent: left }] }
routes:
  - { name: kept, topic: a, job: kept }
  - { name: left, topic: a, job: left }
  - { name: off, topic: a, job: kept, enabled: false }
`,
  );
  await forgetAudit(plane.database.db);
});
afterAll(() => plane.stop());

const rest = `
queues: [{ name: kept, pool: p }]
agents: [{ name: kept, dispatch: { pull: {} }, queue: used }]
jobs: [{ name: kept, steps: [{ name: a, agent: kept }, { name: b, agent: used }] }]
routes: [{ name: kept, topic: a, job: kept }]
`;

test('without it, what a manifest lacks stays', async () => {
  expect(told(await apply(plane, rest, { dryRun: true }))).toEqual([
    'unchanged queue kept',
    'unchanged agent kept',
    'update job kept',
    'unchanged route kept',
  ]);
});

test('routes are deleted, jobs disabled, agents and queues paused unless the manifest uses them', async () => {
  expect(told(await apply(plane, rest, { prune: true }))).toEqual([
    'unchanged queue kept',
    'unchanged agent kept',
    'update job kept',
    'unchanged route kept',
    'delete route left',
    'delete route off',
    'disable job left',
    'disable agent left',
    'disable queue left',
  ]);
  expect(await plane.rows('select name from runplane.routes')).toEqual([{ name: 'kept' }]);
  expect(await plane.rows('select name, enabled from runplane.jobs order by name')).toEqual([
    { name: 'kept', enabled: true },
    { name: 'left', enabled: false },
    { name: 'off', enabled: false },
  ]);
  expect(await plane.rows('select name from runplane.agents where paused')).toEqual([{ name: 'left' }]);
  expect(await plane.rows('select name from runplane.queues where paused')).toEqual([{ name: 'left' }]);
  const audit = await auditOf(plane);
  expect(audit.map(({ action, target, reason }) => [action, target, reason])).toEqual([
    ['job.save', 'kept', null],
    ['route.delete', 'left', 'not in the manifest'],
    ['route.delete', 'off', 'not in the manifest'],
    ['job.save', 'left', 'not in the manifest'],
    ['agent.save', 'left', 'not in the manifest'],
    ['queue.save', 'left', 'not in the manifest'],
  ]);
  expect(audit.at(-3)).toMatchObject({
    actor: ann.name,
    before: { enabled: true, version: 1 },
    after: { enabled: false, version: 2 },
  });
});

test('a second time it finds nothing more', async () => {
  const before = await configurationOf(plane);
  const again = told(await apply(plane, rest, { prune: true }));
  expect(new Set(again.map((line) => line.split(' ')[0]))).toEqual(new Set(['unchanged']));
  expect(await configurationOf(plane)).toEqual(before);
});
