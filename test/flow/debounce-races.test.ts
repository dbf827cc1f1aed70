import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Queryable } from '../../src/db/pool.ts';
import { transaction } from '../../src/db/transaction.ts';
import { cancelTasks } from '../../src/result/cancel-tasks.ts';
import { createMover } from '../../src/scheduler/mover.ts';
import { at, stopClock } from '../support/clock.ts';
import { actor, ControlPlane, quiet } from '../support/control-plane.ts';
import { type DebouncedInput, launchDebounced, runIdOf } from '../support/debounced.ts';
import { count } from '../support/tier.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

interface Item {
  from: string;
  i: number;
}
/** What each run has collected. */
const collected = async (): Promise<Item[][]> =>
  (await plane.rows<{ items: Item[] }>(`select config -> 'items' as items from runplane.runs`)).map(
    ({ items }) => items,
  );
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

test('launches at two replicas, one by one and in batches, make one run with all their configs', async () => {
  const other = await ControlPlane.start({ database: plane.database });
  const n = count({ test: 100, soak: 1000 });
  const inputs = (from: string): DebouncedInput[] =>
    upTo(n).map((i) => ({
      config: { from, i },
      idempotencyKey: `${from} ${i}`,
      debounce: { collect: true },
    }));
  const outcomes = await Promise.all([
    ...inputs('a').map((input) => launchDebounced(plane, [input])),
    ...inputs('b').map((input) => launchDebounced(other, [input])),
    launchDebounced(plane, inputs('c')),
    launchDebounced(other, inputs('d')),
  ]);
  expect(new Set(outcomes.flat().map(runIdOf)).size).toBe(1);
  const [items, ...more] = await collected();
  expect(more).toEqual([]);
  for (const source of ['a', 'b', 'c', 'd'])
    expect(items?.filter(({ from }) => from === source).map(({ i }) => i)).toEqual(upTo(n));
  await other.services.stop();
});

test('launches, the mover, claims and cancels at once lose no config and repeat none', async () => {
  const { db } = plane.database;
  const mover = createMover({
    db,
    onMoved: () => {},
    onError: (error) => quiet.error({ error }, 'mover'),
  });
  const rounds = count({ test: 60, soak: 1000 });
  const launching = async (from: string): Promise<void> => {
    for (const i of upTo(rounds)) {
      const debounce = { seconds: 0.002, maxSeconds: 0.02, collect: true };
      runIdOf((await launchDebounced(plane, [{ config: { from, i }, debounce }]))[0]);
    }
  };
  const ending = async (): Promise<void> => {
    for (const i of upTo(rounds)) {
      mover.wake();
      await plane.claim(['a'], 1);
      const [queued] = await plane.rows<{ id: string }>(
        `select id from runplane.runs where status = 'QUEUED' order by created_at desc limit 1`,
      );
      if (i % 5 === 0 && queued)
        await plane.services.actions.cancelRun({ runId: queued.id, reason: null }, actor);
    }
  };
  mover.start();
  await Promise.all([launching('a'), launching('b'), launching('c'), ending()]);
  await mover.stop();
  const items = (await collected()).flat();
  for (const source of ['a', 'b', 'c']) {
    const own = items.filter(({ from }) => from === source).map(({ i }) => i);
    expect(own.sort((x, y) => x - y)).toEqual(upTo(rounds));
  }
});

/** Settles when a transaction of this database waits for a lock. */
async function untilBlocked(): Promise<void> {
  const blocked = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  while ((await plane.rows(blocked)).length === 0) await new Promise(setImmediate);
}

test.each<[string, (tx: Queryable, run: string) => Promise<unknown>]>([
  ['the mover makes ready', (tx) => tx.query({ text: 'select runplane.move_due_tasks(500)' })],
  [
    'is being cancelled',
    (tx, run) =>
      cancelTasks(tx, {
        runIds: [run],
        chooses: () => true,
        wholeRuns: true,
        graceSeconds: 30,
        reason: null,
      }),
  ],
])('a launch waits to see what becomes of a run that %s, then makes a new one', async (_, change) => {
  const { db } = plane.database;
  await stopClock(db, at(0));
  const run = runIdOf((await launchDebounced(plane, [{}]))[0]);
  await stopClock(db, at(60));
  const launched = await transaction(db, async (tx) => {
    await change(tx, run);
    const outcomes = launchDebounced(plane, [{ config: { late: true } }]);
    await Promise.race([untilBlocked(), outcomes]);
    return { outcomes };
  });
  expect(runIdOf((await launched.outcomes)[0])).not.toBe(run);
  expect(await plane.rows('select config from runplane.runs where id = $1', [run])).toEqual([{ config: {} }]);
});
