import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type EmbeddedPostgres, joinEmbeddedPostgres } from '../../src/db/embedded-postgres.ts';
import { migrate } from '../../src/db/migrate.ts';
import { fromPublicId } from '../../src/domain/ids.ts';
import { seedRegistry } from '../../src/operator/seed-registry.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { openDatabase, type TestDatabase } from '../support/database.ts';
import { Fleet } from '../support/fleet.ts';
import { count } from '../support/tier.ts';

const leaseSeconds = 5;
const minute = 60_000;
const atTheEnd: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of atTheEnd.splice(0).reverse()) await end();
});

async function startAll(database?: TestDatabase): Promise<{ plane: ControlPlane; fleet: Fleet }> {
  const plane = await ControlPlane.start(database ? { database } : {});
  atTheEnd.push(() => plane.stop());
  await plane.agent('pull', { leaseSeconds });
  await plane.agent('inline', { leaseSeconds, dispatch: { inline: { handler: 'work' } } });
  await plane.job('both', ['pull', { name: 'inline', agent: 'inline', dependsOn: ['pull'] }]);
  const fleet = await Fleet.start(plane.database.url, 2);
  atTheEnd.push(() => fleet.stop());
  return { plane, fleet };
}

const launch = (fleet: Fleet, round: number): Promise<string[]> =>
  fleet.launch(
    Array.from({ length: 20 }, (_, i) => ({
      job: 'both',
      idempotencyKey: `${round}/${i}`,
      config: { ms: 50 * (i % 10) },
    })),
  );

async function countOf(plane: ControlPlane, from: string): Promise<number> {
  const [row] = await plane.rows<{ n: number }>(`select count(*)::int as n from ${from}`);
  return row?.n ?? 0;
}

/** Everything that was acknowledged is there, once. */
async function expectNothingLost(
  plane: ControlPlane,
  fleet: Fleet,
  runIds: readonly string[],
): Promise<void> {
  const ended = 'runplane.runs where finished_at is not null';
  await expect.poll(() => countOf(plane, ended), { timeout: 3 * minute, interval: 200 }).toBe(runIds.length);
  const runs = await plane.rows<{ id: string; status: string }>('select id, status from runplane.runs');
  expect(new Set(runs.map(({ id }) => id))).toEqual(new Set(runIds.map((id) => fromPublicId('run', id))));
  expect(new Set(runs.map(({ status }) => status))).toEqual(new Set(['COMPLETED']));
  const outputs = await plane.rows<{ id: string; output: { attemptId: string } }>(
    `select id, output from runplane.tasks where step = 'pull'`,
  );
  const outputOf = new Map(outputs.map(({ id, output }) => [id, output.attemptId]));
  for (const { reported, taskId } of fleet.applied())
    expect(outputOf.get(fromPublicId('task', taskId) ?? '')).toBe(reported);
  const twice = `(select from runplane.attempts where status = 'COMPLETED' group by task_id having count(*) > 1) x`;
  expect(await countOf(plane, twice)).toBe(0);
}

/** 95 of 100 of the attempts that a fault took ended no later than so many seconds after it. */
function p95(seconds: number[]): number {
  const sorted = seconds.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0;
}

test(
  'servers and workers that are killed under load lose nothing that was acknowledged, and repeat nothing',
  async () => {
    const kills = count({ test: 2, soak: 50 });
    const { plane, fleet } = await startAll();
    // Those that execute, then those that answer.
    const victims = [3, 0, 2, 4, 1];
    const runIds: string[] = [];
    const taken = new Map<string, Date>();
    for (let kill = 0; kill < kills; kill++) {
      const victim = victims[kill % victims.length] as number;
      const { pid } = fleet.process(victim).child;
      const leasesOfVictim = `runplane.leases l join runplane.workers w on w.id = l.worker_id where w.name ~ '[ -]${pid}$'`;
      // Others may be quicker and leave it nothing to do.
      let isAtWork = victim < 2;
      do {
        runIds.push(...(await launch(fleet, runIds.length)));
        const allOver = async (): Promise<boolean> =>
          (await countOf(plane, 'runplane.runs where finished_at is not null')) === runIds.length;
        const check = async (): Promise<boolean> => {
          fleet.expectAlive();
          return (isAtWork ||= (await countOf(plane, leasesOfVictim)) > 0) || allOver();
        };
        await expect.poll(check, { timeout: minute, interval: 20 }).toBe(true);
      } while (!isAtWork);
      const held = await plane.rows<{ id: string }>(`select l.attempt_id as id from ${leasesOfVictim}`);
      for (const { id } of held) taken.set(id, new Date());
      await fleet.restart(victim);
    }
    await expectNothingLost(plane, fleet, runIds);
    const lost = await plane.rows<{ id: string; at: Date }>(
      `select id, finished_at as at from runplane.attempts where status = 'LOST' and id = any($1)`,
      [[...taken.keys()]],
    );
    const seconds = lost.map(({ id, at }) => (at.getTime() - (taken.get(id)?.getTime() ?? 0)) / 1000);
    console.log(
      `${kills} kills took ${lost.length} attempts, found lost after at most ${p95(seconds)} s (p95)`,
    );
    if (kills === 50) expect(p95(seconds)).toBeLessThanOrEqual(leaseSeconds + 5);
  },
  60 * minute,
);

// It has a Postgres of its own, which a pooler does not know.
test.skipIf(process.env.TEST_POOLER_URL !== undefined)(
  'a Postgres that stops at once under load loses nothing that was acknowledged, and everything goes on',
  async () => {
    const stops = count({ test: 1, soak: 10 });
    const postgres = await startPostgres();
    const { plane, fleet } = await startAll(postgres.database);
    const runIds: string[] = [];
    const seconds: number[] = [];
    for (let stop = 0; stop < stops; stop++) {
      runIds.push(...(await launch(fleet, stop)));
      await expect
        .poll(() => countOf(plane, 'runplane.leases'), { timeout: minute, interval: 20 })
        .toBeGreaterThan(0);
      await postgres.crash();
      const back = Date.now();
      const left = await plane.rows<{ id: string }>('select attempt_id as id from runplane.leases');
      const ids = left.map(({ id }) => `'${id}'`).join(',') || 'null';
      await expect
        .poll(() => countOf(plane, `runplane.leases where attempt_id in (${ids})`), {
          timeout: minute,
          interval: 50,
        })
        .toBe(0);
      seconds.push((Date.now() - back) / 1000);
    }
    await expectNothingLost(plane, fleet, runIds);
    console.log(
      `${stops} stops: what was executed then was over at most ${p95(seconds)} s after the start (p95)`,
    );
    if (stops === 10) expect(p95(seconds)).toBeLessThanOrEqual(leaseSeconds + 5);
  },
  60 * minute,
);

/** A Postgres of its own that can be stopped without a checkpoint or a word to its clients, and started again. */
async function startPostgres(): Promise<{ database: TestDatabase; crash: () => Promise<void> }> {
  const dataDir = join(await mkdtemp(join(tmpdir(), 'runplane-chaos-')), 'data');
  let member: EmbeddedPostgres = await joinEmbeddedPostgres({ dataDir });
  const { url } = member;
  const installation = await migrate(url);
  const db = openDatabase(url);
  await seedRegistry(db);
  const drop = async (): Promise<void> => {
    await db.close();
    await member.leave();
    await rm(join(dataDir, '..'), { recursive: true, force: true });
  };
  const crash = async (): Promise<void> => {
    const pid = Number.parseInt(await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8'), 10);
    // Immediate shutdown.
    process.kill(pid, 'SIGQUIT');
    await expect.poll(() => isAlive(pid), { timeout: minute, interval: 20 }).toBe(false);
    const before = member;
    member = await joinEmbeddedPostgres({ dataDir });
    expect(member.url).toBe(url);
    await before.leave();
  };
  return { database: { url, db, installation, drop }, crash };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
