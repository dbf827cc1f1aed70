import { expect, test } from 'vitest';
import { newUuid } from '../../src/domain/ids.ts';
import { noRepairs } from '../../src/housekeeping/repair/repairs.ts';
import { setClockAhead } from '../support/clock.ts';
import { actor } from '../support/control-plane.ts';
import { runRound } from '../support/duties.ts';
import { startReplica } from '../support/processes.ts';
import { repaired } from '../support/repaired.ts';
import { count } from '../support/tier.ts';

const story = repaired();
const { create, keepHouse, complete, forgetEnd } = story;

test('what has not been wrong for the threshold is left alone', async () => {
  const ended = await story.plane.launch('one');
  await complete();
  await forgetEnd(ended);
  await story.plane.launch('one');
  await story.plane.rows('delete from runplane.ready_tasks');
  expect(await keepHouse('590 seconds')).toEqual({});
  expect(await keepHouse('601 seconds')).toEqual({ runs: 1, placelessTasks: 1 });
  // The last change counts, not the launch.
  const late = await story.plane.launch('one');
  await setClockAhead(story.plane.database.db, '1 day');
  await complete(2);
  await forgetEnd(late);
  expect(await keepHouse('1 day 590 seconds')).toEqual({});
  expect(await keepHouse('1 day 601 seconds')).toEqual({ runs: 1 });
});

test('what merely waits or still beats is not touched, however old it is', async () => {
  await story.plane.agent('busy');
  await story.plane.agent('paused');
  await story.plane.job('steps', [
    { name: 'first', agent: 'busy' },
    { name: 'then', agent: 'a', dependsOn: ['first'] },
  ]);
  await story.plane.job('halted', [{ name: 'p', agent: 'paused' }]);
  await story.plane.launch('one');
  await story.plane.launch('halted');
  await story.plane.services.configuration.pauseAgent({ name: 'paused' }, actor);
  await story.plane.launch('steps');
  const [running] = await story.plane.claim(['busy']);
  await story.plane.launch('one', { availableAt: new Date(Date.now() + 365 * 86_400_000) });
  await story.plane.launch('one', { serialKey: 'k' });
  await story.plane.launch('one', { serialKey: 'k' });
  await story.plane.services.configuration.pauseQueue({ name: 'default' }, actor);
  await setClockAhead(story.plane.database.db, '300 days');
  await story.plane.services.dispatch.extendLeases([story.plane.credentials(running as never)]);
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
      contents[table] = await story.plane.rows(`select to_jsonb(x) from runplane.${table} x order by 1`);
    return contents;
  };
  const before = await everything();
  expect(await keepHouse('300 days')).toEqual({});
  expect(await everything()).toEqual(before);
});

test('one run that cannot be repaired keeps no other from it', async () => {
  const runs = [
    await story.plane.launch('one'),
    await story.plane.launch('one'),
    await story.plane.launch('one'),
  ];
  await complete(3);
  for (const run of runs) await forgetEnd(run);
  await story.plane.rows(
    `create function runplane.refuse() returns trigger language plpgsql as $$ begin raise exception 'poison'; end $$`,
  );
  await story.plane.rows(
    `create trigger poison before update on runplane.runs for each row when (old.id = '${runs[1]}') execute function runplane.refuse()`,
  );
  expect(await keepHouse()).toEqual({ runs: 2, failed: 1 });
  await story.plane.rows('drop trigger poison on runplane.runs');
  expect(await keepHouse()).toEqual({ runs: 1 });
});

test('of two replicas one does the round, and a round that a replica left goes on where it stopped', async () => {
  const runs = [await story.plane.launch('one'), await story.plane.launch('one')];
  await complete(2);
  for (const run of runs) await forgetEnd(run);
  await story.plane.rows('delete from runplane.ready_tasks');
  await setClockAhead(story.plane.database.db, '1 hour');
  const [one, other] = [create(), create()];
  await Promise.all([one, other].map(({ duty }) => runRound(story.plane.database.db, 'repair', duty)));
  expect([...one.repairs(), ...other.repairs()]).toEqual([{ ...noRepairs, runs: 2 }]);

  for (const run of runs) await forgetEnd(run);
  await story.plane.rows(
    `update runplane.duties set holder = $1, held_until = runplane.clock() + interval '1 minute', due_at = runplane.clock(),
            position = jsonb_build_object('walk', jsonb_build_object('over', 'RUNS', 'pieces', 0), 'afterRun', $2::text, 'repairs', $3::jsonb)`,
    [newUuid(), runs[0], JSON.stringify(noRepairs)],
  );
  await setClockAhead(story.plane.database.db, '62 minutes');
  const third = create();
  await runRound(story.plane.database.db, 'repair', third.duty);
  expect(third.repairs()).toEqual([{ ...noRepairs, runs: 1 }]);
  expect((await story.plane.run(runs[1] ?? '')).status).toBe('COMPLETED');
  expect(await keepHouse('62 minutes')).toEqual({ runs: 1 });
});

test('a replica that is killed in the middle leaves each run repaired or as it was, and another one does the rest', async () => {
  const n = count({ test: 300, soak: 3000 });
  for (let i = 0; i < n; i += 100) {
    await story.plane.services.intake.launchRuns(Array.from({ length: 100 }, () => ({ job: 'one' })));
    await complete(100);
  }
  await story.plane.rows(
    `with r as (update runplane.runs set status = 'RUNNING', finished_at = null, sequence = sequence - 1)
     delete from runplane.change_log where task_id is null and to_status = 'COMPLETED'`,
  );
  await setClockAhead(story.plane.database.db, '1 hour');
  const completed = async () =>
    (await story.plane.rows(`select from runplane.runs where status = 'COMPLETED'`)).length;
  const replica = await startReplica(story.plane.database.url, 'housekeeping');
  await expect.poll(completed, { interval: 5, timeout: 20_000 }).toBeGreaterThan(0);
  await replica.end('SIGKILL');
  const [half] = await story.plane.rows<{ n: number }>(
    `select count(*)::int as n from runplane.runs r where (r.status = 'COMPLETED') <> exists (
       select from runplane.change_log c where c.run_id = r.id and c.task_id is null and c.to_status = 'COMPLETED' and c.sequence = r.sequence)`,
  );
  expect(half?.n).toBe(0);
  await keepHouse('62 minutes');
  expect(await completed()).toBe(n);
});
