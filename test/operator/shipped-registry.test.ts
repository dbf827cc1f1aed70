import { readFile } from 'node:fs/promises';
import { afterEach, expect, it } from 'vitest';
import { shippedPools } from '../../src/domain/registry.ts';
import { seedRegistry } from '../../src/operator/seed-registry.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
afterEach(() => plane.stop());

/** A line a pool: its slots, and each of its queues with weight and shared weight. */
const shipped = `
core        | 8           | default 1 / 3, interactive 3 / 3
enrichment  | 12          | graph 1 / 1, memory 1 / 1, multimodal 1 / 1, question 1 / 1, summary 2 / 2
maintenance | 4           | maintenance 1 / none, sync 2 / none
postprocess | 2           | postprocess 1 / none
shared      | 6 (elastic) |
wiki        | 8           | wiki 1 / none`
  .trim()
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()));

it('an installation starts with the pools and queues that are shipped, of the weights that are written in the documents', async () => {
  plane = await ControlPlane.start();
  const stored = await plane.rows<{ pool: string; slots: string; queues: string }>(
    `select p.name as pool, p.slots_per_replica || case when p.elastic then ' (elastic)' else '' end as slots,
            coalesce(string_agg(q.name || ' ' || q.weight || ' / ' || coalesce(nullif(q.shared_weight, 0)::text, 'none'), ', ' order by q.name), '') as queues
       from runplane.pools p left join runplane.queues q on q.pool_id = p.id group by p.id order by p.name`,
  );
  expect(stored.map(({ pool, slots, queues }) => [pool, slots, queues])).toEqual(shipped);

  const document = await readFile('docs/scheduling.md', 'utf8');
  const table = document
    .split('\n')
    .flatMap((line) => {
      const [, pool = '', slots = '', queues = ''] = line.split('|').map((cell) => cell.trim());
      return shippedPools.some(({ name }) => name === pool) ? [[pool, slots, queues]] : [];
    })
    .map(([pool, slots, queues = '']) => {
      // Behind a colon stands the reason.
      const written = queues.replace(/:.*/, '');
      return [pool, slots, /\d/.test(written) ? written.split(', ').sort().join(', ') : ''];
    });
  expect(table.sort(([a = ''], [b = '']) => (a < b ? -1 : 1))).toEqual(shipped);
});

it('a queue and a pool that a newer version does not ship still drain, by servers and by workers', async () => {
  plane = await ControlPlane.start({ scheduler: true, handlers: { work: async () => ({ output: {} }) } });
  const { configuration } = plane.services;
  await configuration.savePool({ name: 'retired', slotsPerReplica: 1, elastic: false }, actor);
  await configuration.saveQueue({ name: 'old', pool: 'retired', weight: 1 }, actor);
  await configuration.saveQueue({ name: 'old of core', pool: 'core', weight: 1 }, actor);
  const runs: string[] = [];
  for (const queue of ['old', 'old of core'])
    for (const [kind, dispatch] of [
      ['pull', { pull: {} }],
      ['inline', { inline: { handler: 'work' } }],
    ] as const) {
      const name = `${kind} ${queue}`;
      await plane.agent(name, { queue, dispatch });
      await plane.job(name, [name]);
      for (let i = 0; i < 3; i++) runs.push(await plane.launch(name));
    }
  await seedRegistry(plane.database.db);

  const ended = async (): Promise<number> =>
    (await plane.rows("select from runplane.runs where status = 'COMPLETED'")).length;
  for (const pool of ['retired', 'core']) {
    for (let i = 0; i < 3; i++) {
      const [one] = await plane.claim([], 1, { agents: undefined, pool });
      if (!one) throw new Error(`the pool ${pool} gives nothing`);
      await plane.report(one, { status: 'COMPLETED' });
    }
  }
  await expect.poll(ended).toBe(runs.length);
});
