import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CursorError } from '../../src/changelog/cursor.ts';
import { transaction } from '../../src/db/transaction.ts';
import { newUuid } from '../../src/domain/ids.ts';
import { deleteOldRuns, findOldRuns } from '../../src/housekeeping/retention/delete-runs.sql.ts';
import { createRetention, type RetentionDays } from '../../src/housekeeping/retention/retention.ts';
import { setClockAhead } from '../support/clock.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { runRound } from '../support/duties.ts';
import { expectInvariants } from '../support/invariants.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

const shipped: RetentionDays = { runs: 30, events: 30, changeLog: 7, attemptEvents: 7, audit: 365 };
const keepAll: RetentionDays = { runs: 0, events: 0, changeLog: 0, attemptEvents: 0, audit: 0 };

/** A round so many days later; answers what it said that it deleted, but for workers and turns, which always go. */
async function retain(days: number, retentionDays: Partial<RetentionDays>): Promise<Record<string, number>> {
  await setClockAhead(plane.database.db, `${days} days`);
  let said: object = {};
  const duty = createRetention({
    db: plane.database.db,
    retentionDays: { ...keepAll, ...retentionDays },
    onError: (error) => {
      throw error;
    },
    log: { info: (fields) => void (said = fields) },
  });
  await runRound(plane.database.db, 'retention', duty);
  return Object.fromEntries(
    Object.entries(said).filter(
      ([kind, times]) => kind !== 'workers' && kind !== 'customerTurns' && times > 0,
    ),
  );
}

const tables = async () => {
  const counts: Record<string, number> = {};
  for (const table of [
    'runs',
    'tasks',
    'attempts',
    'usage',
    'task_progress',
    'materializations',
    'dead_letters',
    'idempotency_records',
    'debounces',
    'events',
  ]) {
    const [row] = await plane.rows<{ n: number }>(`select count(*)::int as n from runplane.${table}`);
    if (row && row.n > 0) counts[table] = row.n;
  }
  return counts;
};
const runIds = async () =>
  (await plane.rows<{ id: string }>('select id from runplane.runs order by id')).map(({ id }) => id);
const finish = async (result: object = { status: 'COMPLETED' }) => {
  for (const task of await plane.claim(['a'])) await plane.report(task, result as never);
};
const failForGood = { status: 'FAILED', error: { code: 'NO', kind: 'PERMANENT' } };

describe('runs', () => {
  test('go with all that belongs to them once they ended long enough ago, and their keys may be used again', async () => {
    const usage = [{ inputTokens: 1, responseId: 'r1' }];
    const materializations = [{ assetKey: 'doc' }];
    const run = await plane.launch('one', { idempotencyKey: 'k' });
    await finish({ status: 'FAILED', error: { code: 'AGAIN' }, usage });
    await finish({ status: 'COMPLETED', materializations });
    await plane.untilLogIsPast();
    expect(await retain(29, shipped)).toMatchObject({ changes: expect.any(Number) });
    expect(await runIds()).toEqual([run]);
    expect(await retain(31, shipped)).toEqual({ runs: 1 });
    expect(await tables()).toEqual({});
    expect(await plane.launch('one', { idempotencyKey: 'k' })).not.toBe(run);
  });

  test('stay for ever where that is set', async () => {
    await plane.launch('one');
    await finish();
    expect(await retain(3000, { audit: 365 })).toMatchObject({ auditEntries: 2 });
    expect(await runIds()).toHaveLength(1);
  });

  test('that are old but not over stay: waiting, delayed, running, being cancelled', async () => {
    const running = await plane.launch('one');
    await plane.claim(['a']);
    const waiting = await plane.launch('one');
    const delayed = await plane.launch('one', { availableAt: new Date(Date.now() + 364 * 86_400_000) });
    await plane.services.actions.cancelRun({ runId: running }, actor);
    expect(await retain(300, { runs: 30 })).toEqual({});
    expect(await runIds()).toEqual([running, waiting, delayed]);
  });

  test('count from their end, not from their launch', async () => {
    const run = await plane.launch('one');
    await setClockAhead(plane.database.db, '40 days');
    await finish();
    expect(await retain(60, { runs: 30 })).toEqual({});
    expect(await retain(71, { runs: 30 })).toEqual({ runs: 1 });
    expect(await runIds()).not.toContain(run);
  });

  test('with a dead letter stay, until it was replayed with success', async () => {
    const run = await plane.launch('one');
    await finish(failForGood);
    expect(await retain(300, { runs: 30 })).toEqual({});
    const [letter] = await plane.rows<{ id: string }>('select id from runplane.dead_letters');
    await plane.services.actions.replayDeadLetter({ id: letter?.id ?? '' }, actor);
    expect(await retain(301, { runs: 30 })).toEqual({});
    await finish(failForGood);
    expect(await retain(400, { runs: 30 })).toEqual({});
    await plane.services.actions.replayDeadLetter({ id: letter?.id ?? '' }, actor);
    await finish();
    expect(await retain(420, { runs: 30 })).toEqual({});
    expect(await runIds()).toEqual([run]);
    expect(await retain(440, { runs: 30 })).toEqual({ runs: 1 });
    expect(await tables()).toEqual({});
  });

  test('that a live run came from stay until that one is over', async () => {
    const [parent, child] = [await plane.launch('one'), await plane.launch('one')];
    await plane.rows('update runplane.runs set parent_run_id = $1 where id = $2', [parent, child]);
    await plane.claim(['a'], 1).then(([task]) => plane.report(task as never, { status: 'COMPLETED' }));
    expect(await retain(300, { runs: 30 })).toEqual({});
    expect(await runIds()).toEqual([parent, child]);
    await finish();
    expect(await retain(301, { runs: 30 })).toEqual({ runs: 1 });
    expect(await runIds()).toEqual([child]);
  });

  test('whose product a live run was made from stay until that one is over', async () => {
    const source = await plane.launch('one');
    await finish({ status: 'COMPLETED', materializations: [{ assetKey: 'doc' }] });
    await plane.job('reads', [
      { name: 'a', agent: 'a', readsAssetKeys: ['doc'] },
      { name: 'b', agent: 'a', dependsOn: ['a'] },
    ] as never);
    await plane.rows(`update runplane.materializations set correlation_id = 'c'`);
    const reader = await plane.launch('reads', { correlationId: 'c' });
    await finish({ status: 'COMPLETED', materializations: [{ assetKey: 'sum' }] });
    expect(await plane.rows('select from runplane.materialization_inputs')).toHaveLength(1);
    expect(await retain(300, { runs: 30 })).toEqual({});
    expect(await runIds()).toEqual([source, reader]);
    await finish();
    expect(await retain(301, { runs: 30 })).toEqual({ runs: 1 });
    expect(await retain(340, { runs: 30 })).toEqual({ runs: 1 });
  });

  test('with an idempotency key stay at least 7 days, and their key with them', async () => {
    const run = await plane.launch('one', { idempotencyKey: 'k' });
    await plane.launch('one');
    await finish();
    expect(await retain(6, { runs: 1 })).toEqual({ runs: 1 });
    expect(await plane.launch('one', { idempotencyKey: 'k' })).toBe(run);
    expect(await retain(8, { runs: 1 })).toEqual({ runs: 1 });
    expect(await tables()).toEqual({});
  });

  test('that several launches were debounced into go with the keys of all of them', async () => {
    const debounce = { key: 'd', seconds: 60, maxSeconds: 600 };
    const run = await plane.launch('one', { idempotencyKey: 'k1', debounce });
    expect(await plane.launch('one', { idempotencyKey: 'k2', debounce })).toBe(run);
    await setClockAhead(plane.database.db, '1 hour');
    await plane.rows('select runplane.move_due_tasks(10)');
    await finish();
    expect(await retain(6, { runs: 1 })).toEqual({});
    expect(await retain(8, { runs: 1 })).toEqual({ runs: 1 });
    expect(await tables()).toEqual({});
    expect(await plane.launch('one', { idempotencyKey: 'k1', debounce })).not.toBe(run);
  });

  test('that are more than a batch go in several, whole at each step', async () => {
    const run = await plane.launch('one');
    await finish({ status: 'COMPLETED', usage: [{ inputTokens: 1 }] });
    await plane.rows(
      `insert into runplane.tasks (id, run_id, step, agent_id, state, priority, available_at, created_at, finished_at)
       select gen_random_uuid(), run_id, step, agent_id, 'COMPLETED', 0, available_at, created_at, finished_at
         from runplane.tasks, generate_series(1, 6000)`,
    );
    await plane.rows(
      `insert into runplane.change_log (run_id, task_id, sequence, to_status, at)
       select run_id, id, 1, 'COMPLETED', finished_at from runplane.tasks where step = 'a' and not exists (select from runplane.attempts where task_id = tasks.id)`,
    );
    await plane.rows('update runplane.runs set total_tasks = 6001');
    await plane.rows(
      `insert into runplane.usage (attempt_id, task_id, run_id, agent_id, at) select attempt_id, task_id, run_id, agent_id, at from runplane.usage, generate_series(1, 6000)`,
    );
    await plane.launch('one');
    await finish();
    await setClockAhead(plane.database.db, '31 days');
    await plane.rows('analyze');
    const { db } = plane.database;
    const rowsLeft = async () => Object.values(await tables()).reduce((sum, rows) => sum + rows, 0);
    for (let before = await rowsLeft(), batches = 0; before > 0; batches++) {
      const { ids } = await findOldRuns(db, 30, null);
      expect(ids).toContain((await runIds())[0]);
      await deleteOldRuns(db, 30, ids);
      const after = await rowsLeft();
      expect(before - after).toBeGreaterThan(0);
      expect(before - after).toBeLessThanOrEqual(5000);
      if (batches === 3) await expectInvariants(db);
      before = after;
      expect(batches).toBeLessThan(9);
    }
    expect(await runIds()).not.toContain(run);
    expect(await tables()).toEqual({});
  });
});

describe('events', () => {
  const publish = async (idempotencyKey: string | null = null) => {
    const [outcome] = await plane.services.intake.publishEvents([
      { topic: 't.x', payload: {}, idempotencyKey },
    ]);
    if (outcome?.kind !== 'PublishEventSuccess') throw new Error(JSON.stringify(outcome));
    return outcome.eventId;
  };

  test('go with their keys once no run refers to them', async () => {
    await plane.services.configuration.saveRoute({ name: 'r', topic: 't.x', job: 'one' }, actor);
    const event = await publish('k');
    expect(await retain(100, { events: 30 })).toEqual({});
    await finish();
    expect(await retain(101, { runs: 30, events: 30 })).toEqual({});
    expect(await retain(131, { runs: 30, events: 30 })).toEqual({ runs: 1, events: 1 });
    expect(await tables()).toEqual({});
    expect(await publish('k')).not.toBe(event);
  });

  test('with a key stay at least 7 days', async () => {
    const event = await publish('k');
    await publish();
    expect(await retain(6, { events: 1 })).toEqual({ events: 1 });
    expect(await publish('k')).toBe(event);
    expect(await retain(8, { events: 1 })).toEqual({ events: 1 });
  });
});

describe('the change log', () => {
  const streamAfter = (after: string) => plane.services.changeLog.taskChanges({}, after);
  const firstOf = async (after: string) => {
    const stream = streamAfter(after);
    const { value } = await stream.next();
    await stream.return?.();
    return value as { cursor: string; changes: unknown[] };
  };

  /** Rounds until so many changes are gone: a transaction of another database on the server may hold back some of them. */
  async function lose(expected: number): Promise<void> {
    for (let lost = 0; lost < expected; ) lost += (await retain(8, { changeLog: 7 })).changes ?? 0;
  }

  /** The position now, after all that is in the log. */
  async function cursorPastAll(): Promise<string> {
    await plane.untilLogIsPast();
    return plane.services.changeLog.currentCursor();
  }

  test('loses what is too old, and a cursor from before it has expired and tells where to go on', async () => {
    const before = await plane.services.changeLog.currentCursor();
    await plane.launch('one');
    const between = await cursorPastAll();
    expect((await firstOf(before)).changes).toHaveLength(1);
    await setClockAhead(plane.database.db, '6 days');
    await plane.launch('one');
    await lose(2);
    expect((await firstOf(between)).changes).toHaveLength(1);
    await plane.untilLogIsPast();
    const expired = await firstOf(before).catch((error: unknown) => error);
    expect(expired).toMatchObject({
      code: 'CURSOR_EXPIRED',
      message: expect.stringContaining('older than what is kept'),
    });
    const { restartFrom } = expired as CursorError;
    await plane.launch('one');
    expect((await firstOf(restartFrom ?? '')).changes).toHaveLength(1);
  });

  test('that is emptied expires the cursors from before, and no other', async () => {
    const before = await plane.services.changeLog.currentCursor();
    await plane.launch('one');
    const after = await cursorPastAll();
    await lose(2);
    await expect(firstOf(before)).rejects.toThrow(CursorError);
    expect((await firstOf(after)).changes).toEqual([]);
  });

  test('keeps what comes after a transaction that is still open, however old', async () => {
    const { db } = plane.database;
    const deletedAt = async () =>
      (await plane.rows<{ xid: string }>('select log_deleted_xid::text as xid from runplane.installation'))[0]
        ?.xid;
    await plane.launch('one');
    await transaction(db, async (open) => {
      const { rows } = await open.query<{ xid: string }>({
        text: 'select pg_current_xact_id()::text as xid',
      });
      await plane.launch('one');
      await lose(2);
      expect(await retain(8, { changeLog: 7 })).toEqual({});
      expect(BigInt((await deletedAt()) ?? 0)).toBeLessThan(BigInt(rows[0]?.xid ?? 0));
    });
    await lose(2);
  });

  test('keeps later changes of what it lost earlier ones of', async () => {
    const run = await plane.launch('one');
    await setClockAhead(plane.database.db, '6 days');
    await finish();
    await lose(2);
    const left = await plane.rows(
      'select to_status from runplane.change_log where run_id = $1 and task_id is null',
      [run],
    );
    expect(left).toEqual([{ to_status: 'RUNNING' }, { to_status: 'COMPLETED' }]);
    await expectInvariants(plane.database.db);
  });
});

test('a worker goes that was not heard of for 30 days and executes nothing', async () => {
  await plane.claim(['a']);
  await plane.launch('one');
  const busy = newUuid();
  await plane.claim(['a'], 1, { workerId: busy });
  await retain(29, {});
  expect(await plane.rows('select from runplane.workers')).toHaveLength(2);
  await retain(31, {});
  expect(await plane.rows('select worker_key as key from runplane.workers')).toEqual([{ key: busy }]);
});

test('audit entries go by their age', async () => {
  expect(await retain(364, shipped)).toEqual({});
  await plane.agent('b');
  expect(await retain(366, shipped)).toEqual({ auditEntries: 2 });
  expect(await plane.rows('select target from runplane.audit_entries')).toEqual([{ target: 'b' }]);
});

test('a run with spawned tasks goes with what was counted of its steps, in parts too', async () => {
  const run = await plane.launch('one');
  const [task] = await plane.claim(['a'], 1);
  if (!task) throw new Error('nothing to claim');
  const spawn = Array.from({ length: 1000 }, () => ({ step: 'b', agent: 'a' }));
  await plane.report(task, { status: 'COMPLETED', spawn });
  await plane.services.actions.cancelRun({ runId: run }, actor);
  await setClockAhead(plane.database.db, '31 days');
  const page = await findOldRuns(plane.database.db, 30, null);
  expect(page.ids).toEqual([run]);
  expect(await deleteOldRuns(plane.database.db, 30, [run])).toEqual({ runs: 0, all: false });
  await expectInvariants(plane.database.db);
  expect(await retain(31, { runs: 30 })).toMatchObject({ runs: 1 });
  expect(await plane.rows('select run_id from runplane.run_steps')).toEqual([]);
  expect(await plane.rows('select id from runplane.tasks')).toEqual([]);
});

test('customers that had their last turn are forgotten, others and their order stay', async () => {
  await plane.agent('a');
  await plane.job('a', ['a']);
  for (let i = 0; i < 5; i++) await plane.launch('a', { customer: i < 2 ? 'served' : 'waits' });
  expect(await plane.claim(['a'], 4)).toHaveLength(4);
  await retain(1, { runs: 30 });
  expect(await plane.rows('select customer from runplane.customer_turns')).toEqual([{ customer: 'waits' }]);
});
