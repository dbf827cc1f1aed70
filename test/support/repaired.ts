import { afterEach, beforeEach, expect } from 'vitest';
import type { WorkObserver } from '../../src/domain/work-observer.ts';
import { createRepair } from '../../src/housekeeping/repair/repair.ts';
import type { Repairs } from '../../src/housekeeping/repair/repairs.ts';
import { setClockAhead } from './clock.ts';
import { ControlPlane } from './control-plane.ts';
import { runRound } from './duties.ts';

/** For stories of runs that do not fit together: an agent a, a job one with one step, a job two whose step b waits for a. */
export function repaired() {
  let plane: ControlPlane;
  beforeEach(async () => {
    plane = await ControlPlane.start();
    await plane.agent('a');
    await plane.job('one', ['a']);
    await plane.job('two', ['a', { name: 'b', agent: 'a', dependsOn: ['a'] }]);
  });
  afterEach(() => plane.stop());

  const create = (observer: WorkObserver | null = null) => {
    const lines: { fields: object; message: string }[] = [];
    const note = (fields: object, message: string): void => void lines.push({ fields, message });
    const duty = createRepair({
      db: plane.database.db,
      thresholdSeconds: 600,
      onRepaired: () => {},
      onError: (error) => note({ error: String(error) }, 'duty'),
      log: { warn: note, error: note },
      observer,
    });
    /** What the rounds that ended here said of all that was repaired in them. */
    const repairs = () =>
      lines
        .filter(({ message }) => message === 'housekeeping repaired what did not fit together')
        .map(({ fields }) => fields as Repairs);
    return { duty, lines, repairs };
  };

  /** A round an hour later: what it repaired, by its own words. */
  async function keepHouse(ahead = '1 hour'): Promise<Partial<Repairs>> {
    await setClockAhead(plane.database.db, ahead);
    const { duty, repairs } = create();
    await runRound(plane.database.db, 'repair', duty);
    const said = repairs();
    expect(said.length).toBeLessThanOrEqual(1);
    return Object.fromEntries(Object.entries(said[0] ?? {}).filter(([, times]) => times > 0));
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

  return {
    /** Of the story that runs. */
    get plane() {
      return plane;
    },
    create,
    keepHouse,
    changes,
    taskOf,
    complete,
    forgetEnd,
  };
}
