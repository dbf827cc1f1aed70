import { afterEach, expect, test } from 'vitest';
import { createRead } from '../../src/read/read.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { waitingOf } from '../support/waiting.ts';

const planes: ControlPlane[] = [];
/** Handlers that wait until they are let go. */
const letGo: (() => void)[] = [];
afterEach(async () => {
  holds = false;
  for (const go of letGo.splice(0)) go();
  const [first, ...others] = planes.splice(0);
  for (const other of others) await other.services.stop();
  await first?.stop();
});

/** Until then tasks take no time. */
let holds = true;
const untilLetGo = (): Promise<object> =>
  new Promise((resolve) => {
    if (holds) letGo.push(() => resolve({}));
    else resolve({});
  });

/** A replica with these handlers, each of which is for the agent of its name. */
async function replica(...handlers: string[]): Promise<ControlPlane> {
  holds = true;
  const plane = await ControlPlane.start({
    scheduler: true,
    handlers: Object.fromEntries(handlers.map((name) => [name, untilLetGo])),
    ...(planes[0] && { database: planes[0].database }),
  });
  planes.push(plane);
  return plane;
}

const inlineAgent = async (plane: ControlPlane, name: string): Promise<void> => {
  await plane.agent(name, { dispatch: { inline: { handler: name } }, leaseSeconds: 60 });
  await plane.job(name, [name]);
};

const reasonOf = async (plane: ControlPlane, runId: string) => {
  const [task] = await plane.rows<{ id: string }>('select id from runplane.tasks where run_id = $1', [runId]);
  return (await waitingOf(plane.database.db, task?.id ?? ''))?.reason ?? 'runs';
};

test('replicas that differ claim only for the agents whose handlers they have', async () => {
  const plane = await replica('old');
  await inlineAgent(plane, 'old');
  await inlineAgent(plane, 'new');
  const runs = { old: [] as string[], new: [] as string[] };
  for (let i = 0; i < 4; i++)
    for (const name of ['old', 'new'] as const) runs[name].push(await plane.launch(name));
  await expect.poll(() => letGo.length, { timeout: 20_000 }).toBe(4);
  for (const run of runs.new) expect(await reasonOf(plane, run)).toBe('NO_WORKER');

  await replica('new');
  await expect.poll(() => letGo.length, { timeout: 20_000 }).toBe(8);
  const claimed = await plane.rows(`
    select a.name, array_agg(distinct k.agents) as served, count(*)::int as tasks
      from runplane.leases l join runplane.agents a on a.id = l.agent_id
      join lateral (select string_agg(b.name, ',') as agents from runplane.worker_asks k join runplane.agents b on b.id = any(k.agent_ids)
                     where k.worker_id = l.worker_id and k.pool_id = l.pool_id) k on true
     group by a.name order by a.name`);
  expect(claimed).toEqual([
    { name: 'new', served: ['new'], tasks: 4 },
    { name: 'old', served: ['old'], tasks: 4 },
  ]);
});

test('an agent that is given to another handler is served no more by replicas without it', async () => {
  const plane = await replica('old');
  await inlineAgent(plane, 'old');
  const read = createRead(plane.database.db);
  const served = async () => (await read.workers.list(true, {})).edges.map(({ node }) => node.agents);
  await expect.poll(served, { timeout: 20_000 }).toEqual([['old']]);
  await plane.agent('old', { dispatch: { inline: { handler: 'new' } } });
  await expect.poll(served, { timeout: 20_000 }).toEqual([[]]);
  expect(await reasonOf(plane, await plane.launch('old'))).toBe('NO_WORKER');
});

test('tasks that a replica claimed ahead of its slots take none', async () => {
  const plane = await replica('short');
  await plane.services.configuration.savePool({ name: 'core', slotsPerReplica: 2 }, actor);
  await plane.services.configuration.saveQueue({ name: 'default', pool: 'core', sharedWeight: 0 }, actor);
  await inlineAgent(plane, 'short');
  const read = createRead(plane.database.db);
  const { id } = (await read.pools.byNames(['core'])).get('core') ?? { id: '' };
  const use = async () => (await read.pools.use([id])).get(id);
  await expect.poll(use, { timeout: 20_000 }).toEqual({ id, replicas: 1, slots: 2, busySlots: 0 });
  const launch = (n: number) =>
    plane.services.intake.launchRuns(Array.from({ length: n }, () => ({ job: 'short' })));
  // Only of tasks that take hardly any time more are claimed than there are slots.
  holds = false;
  await launch(300);
  const left = () => plane.rows('select id from runplane.runs where finished_at is null');
  await expect.poll(left, { timeout: 20_000 }).toEqual([]);
  holds = true;
  await launch(20);
  const leases = async () => (await plane.rows('select task_id from runplane.leases')).length;
  await expect.poll(leases, { timeout: 20_000 }).toBeGreaterThan(2);
  expect(await use()).toEqual({ id, replicas: 1, slots: 2, busySlots: 2 });
  const [worker] = (await read.workers.list(true, {})).edges.map(({ node }) => node);
  expect((await read.workers.busy([worker?.id ?? ''])).get(worker?.id ?? '')).toMatchObject({ busy: 2 });
});
