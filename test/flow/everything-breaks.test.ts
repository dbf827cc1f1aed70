import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { databaseUrl } from '../support/connection.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { freePort } from '../support/free-port.ts';
import { LogFollower } from '../support/log-follower.ts';
import { type Process, startProcess } from '../support/processes.ts';
import { count, tier } from '../support/tier.ts';

/** Of a run with one task, and of that task. */
const changesOfRun = 6;
const sizes = {
  changes: count({ test: 1_200, soak: Number(process.env.SOAK_CHANGES ?? 1_000_000) }),
  processes: count({ test: 1, soak: 4 }),
  writersOfProcess: 2,
  subscribers: count({ test: 20, soak: 200 }),
  reconnects: count({ test: 30, soak: 1_000 }),
  listenerKills: count({ test: 2, soak: 20 }),
  replicaKills: count({ test: 1, soak: 5 }),
};
const patience = count({ test: 60_000, soak: 3 * 3_600_000 });
const writers = sizes.processes * sizes.writersOfProcess;
const runsOfWriter = Math.ceil(sizes.changes / changesOfRun / writers);
/** Two follow each share, four everything. */
const shares = (sizes.subscribers - 4) / 2;

interface Replica {
  port: number;
  process: Process;
}
let plane: ControlPlane;
let replicas: Replica[] = [];
let writing: Process[] = [];
let followers: LogFollower[] = [];

const startReplica = (port: number): Promise<Process> =>
  startProcess('src/main.ts', [], /runplane ready/, {
    DATABASE_URL: plane.database.url,
    RUNPLANE_PORT: String(port),
    RUNPLANE_ROLES: 'api',
    LOG_LEVEL: 'error',
  });

/** From now on each transaction that changes something commits up to 200 ms late. */
const commitLate = () =>
  plane.rows(`
  create function runplane.late() returns trigger language plpgsql as $$ begin
    if coalesce(current_setting('test.late', true), '') = '' then
      perform set_config('test.late', 'yes', true), pg_sleep(random() * 0.2);
    end if;
    return null;
  end $$;
  create constraint trigger late after insert on runplane.change_log deferrable initially deferred
    for each row execute function runplane.late()`);

beforeEach(async () => {
  plane = await ControlPlane.start();
  for (let writer = 0; writer < writers; writer++) {
    await plane.agent(`agent-${writer}`);
    await plane.job(`agent-${writer}`, [`agent-${writer}`]);
  }
  await commitLate();
  const ports = await Promise.all([freePort(), freePort()]);
  replicas = await Promise.all(ports.map(async (port) => ({ port, process: await startReplica(port) })));
});
afterEach(async () => {
  for (const follower of followers) follower.stop();
  await Promise.all([...writing, ...replicas.map(({ process }) => process)].map((one) => one.end('SIGKILL')));
  if (tier !== 'soak') await plane.stop();
  else {
    // Without the invariants, which compare all changes with each other: that is for smaller tests.
    await plane.services.stop();
    await plane.database.drop();
  }
});

/** Whoever listens, in whatever process, loses its connection. */
const killListeners = () =>
  plane.rows(`select pg_terminate_backend(pid) from pg_stat_activity
               where datname = current_database() and application_name not like 'runplane%' and backend_type = 'client backend'`);

async function killReplica(): Promise<void> {
  const [replica] = replicas.splice(Math.floor(Math.random() * replicas.length), 1);
  if (!replica) return;
  await replica.process.end('SIGKILL');
  replicas.push({ port: replica.port, process: await startReplica(replica.port) });
}

/** A transaction that writes in another database of the cluster, and holds back what is over for everybody. */
async function openElsewhere(): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: databaseUrl(plane.database.url, 'postgres') });
  await client.connect();
  await client.query('begin; select pg_current_xact_id()');
  return () => client.end();
}

test(
  'whoever commits late, loses a connection or is killed: nobody misses a change, each is in order',
  async () => {
    const urls = replicas.map(({ port }) => `http://127.0.0.1:${port}/graphql`);
    const after = await plane.services.changeLog.currentCursor();
    const shareNames = Array.from({ length: shares }, (_, i) => `share-${i}`);
    followers = [...shareNames, null, null].flatMap((share) =>
      (['tasks', 'runs'] as const).map((of) => new LogFollower({ urls, of, share, after }, share !== null)),
    );
    expect(followers).toHaveLength(sizes.subscribers);

    const total = writers * runsOfWriter * changesOfRun;
    // Each change is told to who follows its share, and twice more.
    const tellings = 3 * total;
    let told = 0;
    const troubles: Promise<unknown>[] = [];
    const done = { reconnects: 0, listenerKills: 0, replicaKills: 0 };
    let release: (() => Promise<void>) | null = null;
    /** Troubles come evenly over what is told. */
    const due = (wanted: number): number => Math.floor((told / tellings) * (wanted + 1));
    const onSeen = (changes: number): void => {
      told += changes;
      while (done.reconnects < Math.min(sizes.reconnects, due(sizes.reconnects))) {
        done.reconnects++;
        followers[Math.floor(Math.random() * followers.length)]?.break();
      }
      if (done.listenerKills < Math.min(sizes.listenerKills, due(sizes.listenerKills))) {
        done.listenerKills++;
        troubles.push(killListeners());
      }
      if (done.replicaKills < Math.min(sizes.replicaKills, due(sizes.replicaKills))) {
        done.replicaKills++;
        troubles.push((troubles.at(-1) ?? Promise.resolve()).then(killReplica));
      }
    };
    const following = Promise.all(followers.map((follower) => follower.follow(onSeen)));
    const started = performance.now();
    const args = (first: number): string[] =>
      [writers, first, sizes.writersOfProcess, runsOfWriter, shares].map(String);
    writing = await Promise.all(
      Array.from({ length: sizes.processes }, (_, i) =>
        startProcess(
          'test/support/change-writer.ts',
          [plane.database.url, ...args(i * sizes.writersOfProcess)],
          /ready/,
        ),
      ),
    );
    // While it is open nobody's cursor moves on, and who comes again is told again all that was since: for a part of the time.
    await expect.poll(() => told, { timeout: patience, interval: 20 }).toBeGreaterThan(tellings * 0.5);
    release = await openElsewhere();
    // Much may have been told while it was opened.
    const held = Math.min(told + tellings * count({ test: 0.2, soak: 0.02 }), tellings);
    await expect
      .poll(() => told, { timeout: patience, interval: 20 })
      .toBeGreaterThanOrEqual(Math.floor(held));
    await release();

    const ends = await Promise.all(writing.map((writer) => writer.ended));
    expect(ends, writing.map((writer) => writer.output()).join('\n')).toEqual(writing.map(() => 0));
    const seconds = (performance.now() - started) / 1000;
    await Promise.all(troubles);
    const rows = await plane.rows<{ share: string; tasks: number; runs: number }>(`
    select r.correlation_id as share, count(c.task_id)::int as tasks, (count(*) - count(c.task_id))::int as runs
      from runplane.change_log c join runplane.runs r on r.id = c.run_id group by 1`);
    const sum = (of: 'tasks' | 'runs'): number => rows.reduce((all, row) => all + row[of], 0);
    expect(sum('tasks') + sum('runs')).toBe(total);
    const expected = followers.map(({ options: { of, share } }) =>
      share === null ? sum(of) : (rows.find((row) => row.share === share)?.[of] ?? 0),
    );
    await expect
      .poll(() => followers.map(({ seen }) => seen), { timeout: patience, interval: 100 })
      .toEqual(expected);
    for (const follower of followers) follower.stop();
    await following;

    expect(followers.flatMap(({ faults }) => faults)).toEqual([]);
    expect(done).toEqual({
      reconnects: sizes.reconnects,
      listenerKills: sizes.listenerKills,
      replicaKills: sizes.replicaKills,
    });
    if (tier === 'soak') {
      const repeated = followers.reduce((all, follower) => all + follower.repeated, 0);
      const reconnects = followers.reduce((all, follower) => all + follower.reconnects - 1, 0);
      const slow = followers.reduce((all, follower) => all + follower.slow, 0);
      console.log({ total, seconds, seen: followers.length, reconnects, repeated, slow });
    }
  },
  patience,
);
