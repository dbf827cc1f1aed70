import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newUuid } from '../../src/domain/ids.ts';
import { createRepair } from '../../src/housekeeping/repair/repair.ts';
import { noRepairs, type Repairs } from '../../src/housekeeping/repair/repairs.ts';
import { setClockAhead } from '../support/clock.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { runRound } from '../support/duties.ts';
import { expectInvariants } from '../support/invariants.ts';
import { startReplica } from '../support/processes.ts';
import { count } from '../support/tier.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  await plane.job('two', ['a', { name: 'b', agent: 'a', dependsOn: ['a'] }]);
});
afterEach(() => plane.stop());

const create = () => {
  const lines: { fields: object; message: string }[] = [];
  const note = (fields: object, message: string): void => void lines.push({ fields, message });
  const housekeeping = createRepair({
    db: plane.database.db,
    thresholdSeconds: 600,
    onRepaired: () => {},
    onError: (error) => note({ error: String(error) }, 'duty'),
    log: { warn: note, error: note },
  });
  return { ...housekeeping, lines };
};

/** A round an hour later: what it repaired, and that it said so. */
async function keepHouse(ahead = '1 hour'): Promise<Partial<Repairs>> {
  await setClockAhead(plane.database.db, ahead);
  const { duty, repaired, lines } = create();
  await runRound(plane.database.db, 'repair', duty);
  const did = Object.fromEntries(Object.entries(repaired).filter(([, times]) => times > 0));
  const said = lines.filter(({ message }) => message === 'housekeeping repaired what did not fit together');
  expect(said).toHaveLength(Object.keys(did).length > 0 ? 1 : 0);
  if (said[0]) expect(said[0].fields).toEqual(repaired);
  return did;
}

const changes = async (of: string, id: string): Promise<string[]> => {
  const rows = await plane.rows<{ to: string; reason: string | null }>(
    `select to_status as to, reason from runplane.change_log
      where ${of} = $1 and ($2 or task_id is null) order by sequence`,
    [id, of === 'task_id'],
  );
  return rows.map(({ to, reason }) => (reason === null ? to : `${to} ${reason}`));
};
const taskOf = async (runId: string, step = 'a'): Promise<string> => {
  const [task] = await plane.rows<{ id: string }>(
    'select id from runplane.tasks where run_id = $1 and step = $2',
    [runId, step],
  );
  return task?.id ?? '';
};
const complete = async (limit = 1): Promise<void> => {
  for (const task of await plane.claim(['a'], limit)) await plane.report(task, { status: 'COMPLETED' });
};
/** As if the change of the run's end had never been written. */
const forgetEnd = (runId: string) =>
  plane.rows(
    `with r as (update runplane.runs set status = 'RUNNING', finished_at = null, sequence = sequence - 1 where id = $1)
     delete from runplane.change_log where run_id = $1 and task_id is null and to_status in ('COMPLETED', 'FAILED')`,
    [runId],
  );

describe('runs', () => {
  test('one whose tasks are all over ends as they did, and its stream hears of it', async () => {
    const run = await plane.launch('one');
    await complete();
    await forgetEnd(run);
    expect(await keepHouse()).toEqual({ runs: 1 });
    expect(await plane.run(run)).toEqual({ status: 'COMPLETED', openTasks: 0 });
    expect(await changes('run_id', run)).toEqual(['QUEUED', 'RUNNING', 'COMPLETED']);
    expect(await keepHouse()).toEqual({});
  });

  test('one that counts its tasks wrongly counts them anew, and ends when they are over', async () => {
    const [low, high, lost] = [
      await plane.launch('two'),
      await plane.launch('two'),
      await plane.launch('one'),
    ];
    await complete();
    await plane.rows('update runplane.runs set open_tasks = 1, blocked_tasks = 1 where id = $1', [high]);
    await plane.rows(
      'update runplane.runs set total_tasks = 9, open_tasks = 7, blocked_tasks = 3 where id = $1',
      [low],
    );
    await plane.claim(['a'], 3);
    await plane.rows('update runplane.runs set open_tasks = 0 where id = $1', [lost]);
    expect(await keepHouse()).toEqual({ counters: 3 });
    expect((await plane.run(high)).openTasks).toBe(2);
    expect((await plane.run(lost)).openTasks).toBe(1);
    await expectInvariants(plane.database.db);
  });

  test('one that ended although a task of it is open goes on', async () => {
    const run = await plane.launch('one');
    await plane.rows(
      `with r as (update runplane.runs set status = 'COMPLETED', open_tasks = 0, finished_at = runplane.clock(), sequence = 2 where id = $1)
       insert into runplane.change_log (run_id, sequence, from_status, to_status, at) values ($1, 2, 'QUEUED', 'COMPLETED', runplane.clock())`,
      [run],
    );
    expect(await keepHouse()).toEqual({ counters: 1 });
    expect(await plane.run(run)).toEqual({ status: 'RUNNING', openTasks: 1 });
    await complete();
    expect(await changes('run_id', run)).toEqual([
      'QUEUED',
      'COMPLETED',
      'RUNNING HOUSEKEEPING',
      'COMPLETED',
    ]);
  });
});

describe('a step that is blocked though what it waited for is over', () => {
  const forgetUnblocking = async (runId: string) => {
    const b = await taskOf(runId, 'b');
    await plane.rows('delete from runplane.ready_tasks where task_id = $1', [b]);
    await plane.rows('delete from runplane.change_log where task_id = $1 and sequence > 1', [b]);
    await plane.rows('delete from runplane.dead_letters where task_id = $1', [b]);
    await plane.rows(
      `update runplane.tasks set state = 'BLOCKED', sequence = 1, finished_at = null, error_code = null, error_kind = null,
         error_message = null where id = $1`,
      [b],
    );
    await plane.rows('update runplane.runs set open_tasks = 1, blocked_tasks = 1 where id = $1', [runId]);
  };

  test('is enqueued', async () => {
    const run = await plane.launch('two');
    await complete();
    await forgetUnblocking(run);
    expect(await keepHouse()).toEqual({ unblockedTasks: 1 });
    expect(await plane.steps(run)).toEqual({ a: 'COMPLETED', b: 'ENQUEUED' });
    await complete();
    expect((await plane.run(run)).status).toBe('COMPLETED');
  });

  test('fails where what it waited for failed, and so does its run', async () => {
    const run = await plane.launch('two');
    const [task] = await plane.claim(['a']);
    await plane.report(task as never, { status: 'FAILED', error: { code: 'NO', kind: 'PERMANENT' } });
    await forgetEnd(run);
    await forgetUnblocking(run);
    expect(await keepHouse()).toEqual({ unblockedTasks: 1 });
    expect(await plane.steps(run)).toEqual({ a: 'FAILED', b: 'FAILED' });
    expect((await plane.run(run)).status).toBe('FAILED');
  });
});

describe('an open task without a place', () => {
  test('is ready again, and its change log says that nobody but housekeeping did it', async () => {
    const run = await plane.launch('one');
    await plane.rows('delete from runplane.ready_tasks');
    expect(await keepHouse()).toEqual({ placelessTasks: 1 });
    expect(await changes('task_id', await taskOf(run))).toEqual(['ENQUEUED', 'ENQUEUED HOUSEKEEPING']);
    await complete();
    expect((await plane.run(run)).status).toBe('COMPLETED');
  });

  test('whose lease vanished has lost that attempt, whose late result still counts', async () => {
    const run = await plane.launch('one');
    const [task] = await plane.claim(['a']);
    await plane.report(task as never, { status: 'FAILED', error: { code: 'AGAIN' } });
    const [second] = await plane.claim(['a']);
    await plane.rows('delete from runplane.leases');
    expect(await keepHouse()).toEqual({ placelessTasks: 1 });
    const attempts = await plane.rows(
      'select id, number, status, counted from runplane.attempts where run_id = $1 order by number',
      [run],
    );
    expect(attempts).toEqual([
      { id: task?.attemptId, number: 1, status: 'FAILED', counted: true },
      { id: second?.attemptId, number: 2, status: 'LOST', counted: false },
    ]);
    await expectInvariants(plane.database.db);
    expect(await plane.report(second as never, { status: 'COMPLETED' })).toMatchObject({
      outcome: 'APPLIED',
    });
  });

  test('that was to be cancelled is cancelled', async () => {
    const run = await plane.launch('one');
    const [task] = await plane.claim(['a']);
    await plane.services.actions.cancelTask({ taskId: task?.taskId ?? '' }, actor);
    await plane.rows('delete from runplane.leases');
    expect(await keepHouse()).toEqual({ placelessTasks: 1 });
    expect(await plane.steps(run)).toEqual({ a: 'CANCELLED' });
    expect((await plane.run(run)).status).toBe('CANCELLED');
  });

  test('waits again for its time where that is to come', async () => {
    const run = await plane.launch('one', { availableAt: new Date(Date.now() + 86_400_000) });
    await plane.rows('delete from runplane.delayed_tasks');
    expect(await keepHouse()).toEqual({ placelessTasks: 1 });
    const [delayed] = await plane.rows<{ hours: number }>(
      'select round(extract(epoch from available_at - runplane.clock()) / 3600)::int as hours from runplane.delayed_tasks where run_id = $1',
      [run],
    );
    expect(delayed?.hours).toBe(23);
  });

  test('that is the first of its serial key is ready again, before the others of the key', async () => {
    const [first, second] = [
      await plane.launch('one', { serialKey: 'k' }),
      await plane.launch('one', { serialKey: 'k' }),
    ];
    await plane.rows('delete from runplane.ready_tasks');
    expect(await keepHouse()).toEqual({ placelessTasks: 1 });
    const claimed = await plane.claim(['a']);
    expect(claimed.map(({ runId }) => runId)).toEqual([first]);
    for (const task of claimed) await plane.report(task, { status: 'COMPLETED' });
    expect((await plane.claim(['a'])).map(({ runId }) => runId)).toEqual([second]);
  });

  test('is found although its last change is not kept any more', async () => {
    const run = await plane.launch('one');
    await plane.rows('delete from runplane.ready_tasks');
    await plane.rows('delete from runplane.change_log');
    expect(await keepHouse()).toEqual({ placelessTasks: 1 });
    await complete();
    expect((await plane.run(run)).status).toBe('COMPLETED');
    await plane.rows(`update runplane.installation set log_deleted_xid = '1'`);
  });

  test('whose row nobody would find gets one that is found', async () => {
    const run = await plane.launch('one');
    await plane.rows('update runplane.ready_tasks set priority_key = 5');
    expect(await keepHouse()).toEqual({ placelessTasks: 1, surplusPlaces: 1 });
    await complete();
    expect((await plane.run(run)).status).toBe('COMPLETED');
  });
});

describe('a place that is too many', () => {
  const makeReady = (taskId: string) =>
    plane.rows(
      `insert into runplane.ready_tasks (agent_id, priority_key, turn, rank, task_id, run_id, sequence, attempts, ready_at)
       select t.agent_id, -t.priority, t.turn, t.rank, t.id, t.run_id, t.sequence, 0, runplane.clock() from runplane.tasks t where t.id = $1`,
      [taskId],
    );

  test('goes: ready beside a lease, delayed beside ready', async () => {
    await plane.launch('one');
    await plane.launch('one');
    const [task] = await plane.claim(['a'], 1);
    await makeReady(task?.taskId ?? '');
    await plane.rows(
      `insert into runplane.delayed_tasks (available_at, task_id, run_id, agent_id, sequence, attempts, reason, since)
       select t.available_at, t.id, t.run_id, t.agent_id, 1, 0, 'NOT_BEFORE', runplane.clock() from runplane.tasks t where t.id <> $1`,
      [task?.taskId],
    );
    expect(await keepHouse()).toEqual({ surplusPlaces: 2 });
    await expectInvariants(plane.database.db);
    expect(await plane.report(task as never, { status: 'COMPLETED' })).toMatchObject({ outcome: 'APPLIED' });
    await complete();
  });

  test('goes: ready, delayed or behind a key though the task is over; the next of the key gets its turn', async () => {
    await plane.launch('one', { serialKey: 'k' });
    await complete();
    const [over] = await plane.rows<{ id: string }>('select id from runplane.tasks');
    await plane.rows(
      `insert into runplane.serial_tasks (agent_id, serial_key, rank, task_id, run_id, sequence, attempts, since)
       select agent_id, serial_key, 1, id, run_id, 2, 1, runplane.clock() from runplane.tasks`,
    );
    await makeReady(over?.id ?? '');
    const next = await plane.launch('one', { serialKey: 'k' });
    expect(await keepHouse()).toEqual({ surplusPlaces: 2 });
    expect((await plane.claim(['a'])).map(({ runId }) => runId)).toEqual([next]);
  });

  test('goes: one of a task that does not exist', async () => {
    await plane.launch('one');
    const task = newUuid();
    await plane.rows(
      `insert into runplane.ready_tasks (agent_id, priority_key, turn, rank, task_id, run_id, sequence, attempts, ready_at)
       select agent_id, 0, 99, 99, $1::uuid, $2::uuid, 1, 0, ready_at from runplane.ready_tasks`,
      [task, newUuid()],
    );
    expect(await keepHouse()).toEqual({ surplusPlaces: 1 });
    await complete();
  });
});

test('a lease of a task that is over is given up, and its attempt is recorded as cancelled', async () => {
  const run = await plane.launch('one');
  await complete();
  await plane.rows(
    `insert into runplane.leases (attempt_id, task_id, run_id, agent_id, claim_seq, number, sequence, worker_id, lease_seconds, started_at, expires_at)
     select $1::uuid, t.id, t.run_id, t.agent_id, 99, 2, 3, $1::uuid, 60, runplane.clock(), runplane.clock() + interval '1 year' from runplane.tasks t`,
    [newUuid()],
  );
  expect(await keepHouse()).toEqual({ leases: 1 });
  expect(await plane.rows('select number, status from runplane.attempts order by number')).toEqual([
    { number: 1, status: 'COMPLETED' },
    { number: 2, status: 'CANCELLED' },
  ]);
  expect((await plane.run(run)).status).toBe('COMPLETED');
});

test('what has not been wrong for the threshold is left alone', async () => {
  const ended = await plane.launch('one');
  await complete();
  await forgetEnd(ended);
  await plane.launch('one');
  await plane.rows('delete from runplane.ready_tasks');
  expect(await keepHouse('590 seconds')).toEqual({});
  expect(await keepHouse('601 seconds')).toEqual({ runs: 1, placelessTasks: 1 });
  // The last change counts, not the launch.
  const late = await plane.launch('one');
  await setClockAhead(plane.database.db, '1 day');
  await complete(2);
  await forgetEnd(late);
  expect(await keepHouse('1 day 590 seconds')).toEqual({});
  expect(await keepHouse('1 day 601 seconds')).toEqual({ runs: 1 });
});

test('what merely waits or still beats is not touched, however old it is', async () => {
  await plane.agent('busy');
  await plane.agent('paused');
  await plane.job('steps', [
    { name: 'first', agent: 'busy' },
    { name: 'then', agent: 'a', dependsOn: ['first'] },
  ]);
  await plane.job('halted', [{ name: 'p', agent: 'paused' }]);
  await plane.launch('one');
  await plane.launch('halted');
  await plane.services.configuration.pauseAgent({ name: 'paused' }, actor);
  await plane.launch('steps');
  const [running] = await plane.claim(['busy']);
  await plane.launch('one', { availableAt: new Date(Date.now() + 365 * 86_400_000) });
  await plane.launch('one', { serialKey: 'k' });
  await plane.launch('one', { serialKey: 'k' });
  await plane.services.configuration.pauseQueue({ name: 'default' }, actor);
  await setClockAhead(plane.database.db, '300 days');
  await plane.services.dispatch.extendLeases([plane.credentials(running as never)]);
  const tables = [
    'runs',
    'tasks',
    'attempts',
    'ready_tasks',
    'delayed_tasks',
    'serial_tasks',
    'leases',
    'change_log',
  ];
  const everything = async () => {
    const contents: Record<string, object[]> = {};
    for (const table of tables)
      contents[table] = await plane.rows(`select to_jsonb(x) from runplane.${table} x order by 1`);
    return contents;
  };
  const before = await everything();
  expect(await keepHouse('300 days')).toEqual({});
  expect(await everything()).toEqual(before);
});

test('one run that cannot be repaired keeps no other from it', async () => {
  const runs = [await plane.launch('one'), await plane.launch('one'), await plane.launch('one')];
  await complete(3);
  for (const run of runs) await forgetEnd(run);
  await plane.rows(
    `create function runplane.refuse() returns trigger language plpgsql as $$ begin raise exception 'poison'; end $$`,
  );
  await plane.rows(
    `create trigger poison before update on runplane.runs for each row when (old.id = '${runs[1]}') execute function runplane.refuse()`,
  );
  expect(await keepHouse()).toEqual({ runs: 2, failed: 1 });
  await plane.rows('drop trigger poison on runplane.runs');
  expect(await keepHouse()).toEqual({ runs: 1 });
});

test('of two replicas one does the round, and a round that a replica left goes on where it stopped', async () => {
  const runs = [await plane.launch('one'), await plane.launch('one')];
  await complete(2);
  for (const run of runs) await forgetEnd(run);
  await plane.rows('delete from runplane.ready_tasks');
  await setClockAhead(plane.database.db, '1 hour');
  const [one, other] = [create(), create()];
  await Promise.all([one, other].map(({ duty }) => runRound(plane.database.db, 'repair', duty)));
  expect(new Set([one.repaired.runs, other.repaired.runs])).toEqual(new Set([0, 2]));

  for (const run of runs) await forgetEnd(run);
  await plane.rows(
    `update runplane.duties set holder = $1, held_until = runplane.clock() + interval '1 minute', due_at = runplane.clock(),
            position = jsonb_build_object('walk', jsonb_build_object('over', 'RUNS', 'pieces', 0), 'afterRun', $2::text, 'repairs', $3::jsonb)`,
    [newUuid(), runs[0], JSON.stringify(noRepairs)],
  );
  await setClockAhead(plane.database.db, '62 minutes');
  const third = create();
  await runRound(plane.database.db, 'repair', third.duty);
  expect(third.repaired).toEqual({ ...noRepairs, runs: 1 });
  expect((await plane.run(runs[1] ?? '')).status).toBe('COMPLETED');
  expect(await keepHouse('62 minutes')).toEqual({ runs: 1 });
});

test('a replica that is killed in the middle leaves each run repaired or as it was, and another one does the rest', async () => {
  const n = count({ test: 300, soak: 3000 });
  for (let i = 0; i < n; i += 100) {
    await plane.services.intake.launchRuns(Array.from({ length: 100 }, () => ({ job: 'one' })));
    await complete(100);
  }
  await plane.rows(
    `with r as (update runplane.runs set status = 'RUNNING', finished_at = null, sequence = sequence - 1)
     delete from runplane.change_log where task_id is null and to_status = 'COMPLETED'`,
  );
  await setClockAhead(plane.database.db, '1 hour');
  const completed = async () =>
    (await plane.rows(`select from runplane.runs where status = 'COMPLETED'`)).length;
  const replica = await startReplica(plane.database.url, 'housekeeping');
  await expect.poll(completed, { interval: 5, timeout: 20_000 }).toBeGreaterThan(0);
  await replica.end('SIGKILL');
  const [half] = await plane.rows<{ n: number }>(
    `select count(*)::int as n from runplane.runs r where (r.status = 'COMPLETED') <> exists (
       select from runplane.change_log c where c.run_id = r.id and c.task_id is null and c.to_status = 'COMPLETED' and c.sequence = r.sequence)`,
  );
  expect(half?.n).toBe(0);
  await keepHouse('62 minutes');
  expect(await completed()).toBe(n);
});

test('the steps of a run with spawned tasks are counted anew, and what waited for them in vain goes on', async () => {
  const run = await plane.launch('two');
  const [task] = await plane.claim(['a'], 1);
  if (!task) throw new Error('nothing to claim');
  await plane.report(task, { status: 'COMPLETED', spawn: [{ step: 'c', agent: 'a' }] });
  await plane.rows('update runplane.run_steps set open = open + 1 where run_id = $1', [run]);
  await complete();
  expect(await plane.steps(run)).toEqual({ a: 'COMPLETED', b: 'BLOCKED', c: 'COMPLETED' });
  expect(await keepHouse()).toEqual({ counters: 1, unblockedTasks: 1 });
  expect(await plane.steps(run)).toMatchObject({ b: 'ENQUEUED' });
  await expectInvariants(plane.database.db);
  expect(await keepHouse('2 hours')).toEqual({});
});
