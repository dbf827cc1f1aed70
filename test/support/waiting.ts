import { expect } from 'vitest';
import type { Database } from '../../src/db/pool.ts';
import { createRead } from '../../src/read/read.ts';
import { waitingReasons } from '../../src/read/waiting.sql.ts';
import type { Waiting } from '../../src/read/waiting.ts';

/** Why a task waits; and that each reason, as a filter of all tasks and of runs, finds just the tasks that wait for it. */
export async function waitingOf(db: Database, taskId: string): Promise<Waiting | undefined> {
  const read = createRead(db);
  const { rows } = await db.query<{ id: string; runId: string }>({
    text: 'select id, run_id as "runId" from runplane.tasks order by id limit 200',
  });
  const runIds = [...new Set(rows.map(({ runId }) => runId))];
  const waiting = await read.waiting.ofTasks(rows.map(({ id }) => id));
  const first = { first: 200 };
  for (const reason of waitingReasons) {
    const filter = { waitingReasons: [reason] };
    const expected = rows.map(({ id }) => id).filter((id) => waiting.get(id)?.reason === reason);
    const page = await read.tasks.list(filter, 'CREATED_ASC', first);
    expect(
      page.edges.map(({ node }) => node.id),
      reason,
    ).toEqual(expected);
    const ofRuns = await read.tasks.ofRuns(runIds, filter, first);
    const found = [...ofRuns.values()].flatMap(({ edges }) => edges.map(({ node }) => node.id));
    expect(found.sort(), reason).toEqual(expected);
  }
  return waiting.get(taskId);
}
