import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RerunInput } from '../../src/operator/repeat-types.ts';
import type { JobStepInput } from '../../src/operator/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  for (const name of ['a', 'b', 'c', 'd']) await plane.agent(name);
  await plane.job('one', ['a']);
  await plane.job(
    'chain',
    [
      step('a', [], { input: { of: { $eval: 'config.doc' }, run: { $eval: 'run.id' } } }),
      step('b', ['a'], { input: { $eval: 'steps.a.output' } }),
      step('c', ['b'], { input: [{ $eval: 'steps.a.output' }, { $eval: 'steps.b.output' }] }),
      step('d', []),
    ],
    { type: 'object', properties: { doc: { type: 'string' } }, additionalProperties: false },
  );
});
afterEach(() => plane.stop());

function step(name: string, dependsOn: string[], more: Partial<JobStepInput> = {}): JobStepInput {
  return { name, agent: name, dependsOn, ...more };
}
const rerun = (runId: string, more: Partial<RerunInput> = {}) =>
  plane.services.actions.rerun({ runId, ...more }, actor);
const rerunId = async (runId: string, more: Partial<RerunInput> = {}) => {
  const outcome = await rerun(runId, more);
  if (outcome.kind !== 'LaunchRunSuccess') throw new Error(JSON.stringify(outcome));
  return outcome.runId;
};
/** Executes everything that there is; these steps fail. Answers the inputs by step. */
const execute = async (...failing: string[]): Promise<Record<string, unknown>> => {
  const inputs: Record<string, unknown> = {};
  for (;;) {
    const tasks = await plane.claim(['a', 'b', 'c', 'd']);
    if (tasks.length === 0) return inputs;
    for (const task of tasks) {
      inputs[task.step] = task.input;
      const failed = { status: 'FAILED', error: { code: 'NO', kind: 'PERMANENT' } } as const;
      await plane.report(
        task,
        failing.includes(task.step) ? failed : { status: 'COMPLETED', output: `${task.step} done` },
      );
    }
  }
};
const audits = () =>
  plane.rows(`select target, after from runplane.audit_entries where action = 'run.rerun'`);

describe('a rerun of what failed', () => {
  test('takes over what completed and executes the rest, which sees the outputs', async () => {
    const old = await plane.launch('chain', {
      config: { doc: 'x' },
      customer: 'acme',
      labels: [{ key: 'k', value: 'v' }],
      correlationId: 'trace',
      priority: 10,
      serialKey: 's',
    });
    expect(Object.keys(await execute('b')).sort()).toEqual(['a', 'b', 'd']);
    const again = await rerunId(old);
    expect(await plane.steps(again)).toEqual({ a: 'COMPLETED', b: 'ENQUEUED', c: 'BLOCKED', d: 'COMPLETED' });
    expect(
      await plane.rows(
        `select status, parent_run_id, priority, customer, labels, correlation_id, serial_key, config, open_tasks, blocked_tasks, total_tasks
           from runplane.runs where id = $1`,
        [again],
      ),
    ).toEqual([
      {
        status: 'QUEUED',
        parent_run_id: old,
        priority: 110,
        customer: 'acme',
        labels: { k: 'v' },
        correlation_id: 'trace',
        serial_key: 's',
        config: { doc: 'x' },
        open_tasks: 2,
        blocked_tasks: 1,
        total_tasks: 4,
      },
    ]);
    expect(await execute()).toEqual({ b: 'a done', c: ['a done', 'b done'] });
    expect(await plane.run(again)).toEqual({ status: 'COMPLETED', openTasks: 0 });
    expect(await plane.run(old)).toMatchObject({ status: 'FAILED' });
    expect(
      await plane.rows(
        `select t.step, o.step as from, t.priority, t.output from runplane.tasks t left join runplane.tasks o on o.id = t.taken_over_from
          where t.run_id = $1 order by t.id`,
        [again],
      ),
    ).toEqual([
      { step: 'a', from: 'a', priority: 10, output: 'a done' },
      { step: 'b', from: null, priority: 110, output: 'b done' },
      { step: 'c', from: null, priority: 110, output: 'c done' },
      { step: 'd', from: 'd', priority: 10, output: 'd done' },
    ]);
    expect(await audits()).toEqual([
      {
        target: expect.stringMatching(/^run_/),
        after: {
          runId: expect.stringMatching(/^run_/),
          onlyFailed: true,
          takenOver: 2,
          configReplaced: false,
        },
      },
    ]);
  });

  test('executes steps again that completed but waited for what failed, and cancelled ones', async () => {
    await plane.job('cleanup', [
      step('a', []),
      step('b', ['a'], { when: 'DEPENDENCIES_FINISHED' }),
      step('c', []),
    ]);
    const old = await plane.launch('cleanup');
    const [c] = await plane.rows<{ id: string }>(`select id from runplane.tasks where step = 'c'`);
    await plane.services.actions.cancelTask({ taskId: c?.id ?? '' }, actor);
    await execute('a');
    const again = await rerunId(old, { priority: -7 });
    expect(await plane.steps(again)).toEqual({ a: 'ENQUEUED', b: 'BLOCKED', c: 'ENQUEUED' });
    await execute();
    expect(await plane.run(again)).toMatchObject({ status: 'COMPLETED' });
    expect(
      await plane.rows('select distinct priority from runplane.tasks where run_id = $1', [again]),
    ).toEqual([{ priority: -7 }]);
  });

  test('gives the new config to what is executed and leaves what was taken over as it was', async () => {
    await plane.job('plain', [step('a', []), step('b', [])]);
    const old = await plane.launch('plain', { config: { n: 1 } });
    await execute('b');
    const again = await rerunId(old, { config: { n: 2 } });
    expect(await execute()).toEqual({ b: { n: 2 } });
    expect(
      await plane.rows('select step, input from runplane.tasks where run_id = $1 order by id', [again]),
    ).toEqual([
      { step: 'a', input: { n: 1 } },
      { step: 'b', input: null },
    ]);
  });

  test('is refused when nothing failed or the run is not over', async () => {
    const run = await plane.launch('one');
    expect(await rerun(run)).toMatchObject({ kind: 'IllegalState', status: 'QUEUED' });
    await execute();
    expect(await rerun(run)).toMatchObject({ kind: 'IllegalState', status: 'COMPLETED' });
    expect(await rerun(crypto.randomUUID())).toMatchObject({ kind: 'NotFound' });
    expect(await audits()).toEqual([]);
  });

  test('executes what was deleted too', async () => {
    const old = await plane.launch('chain', { config: { doc: 'x' } });
    await execute('b');
    const [d] = await plane.rows<{ id: string }>(`select id from runplane.tasks where step = 'd'`);
    await plane.services.actions.deleteTask({ taskId: d?.id ?? '' }, actor);
    expect(await plane.steps(await rerunId(old))).toEqual({
      a: 'COMPLETED',
      b: 'ENQUEUED',
      c: 'BLOCKED',
      d: 'ENQUEUED',
    });
  });
});

describe('a rerun of everything', () => {
  test('executes all steps of the same version, with their inputs rendered anew', async () => {
    const old = await plane.launch('chain', { config: { doc: 'x' } });
    await execute();
    await plane.job('chain', ['a']);
    const again = await rerunId(old, { onlyFailed: false, config: { doc: 'y' } });
    const inputs = await execute();
    expect(inputs).toMatchObject({ a: { of: 'y' }, d: { doc: 'y' } });
    expect(Object.keys(inputs).sort()).toEqual(['a', 'b', 'c', 'd']);
    expect(await plane.run(again)).toMatchObject({ status: 'COMPLETED' });
  });

  test('refuses a config that the schema or a template of its version refuses, and leaves nothing', async () => {
    const old = await plane.launch('chain', { config: { doc: 'x' } });
    await execute();
    expect(await rerun(old, { onlyFailed: false, config: { doc: 1 } })).toMatchObject({
      kind: 'RunConfigValidationInvalid',
      errors: [{ path: ['doc'], reason: 'TYPE_MISMATCH' }],
    });
    expect(await rerun(old, { onlyFailed: false, config: {}, idempotencyKey: 'k' })).toMatchObject({
      kind: 'InvalidInput',
      field: 'config',
    });
    expect(await rerun(old, { config: 7 })).toMatchObject({ kind: 'InvalidInput', field: 'config' });
    expect(await rerun(old, { priority: 1001 })).toMatchObject({ kind: 'InvalidInput', field: 'priority' });
    expect(await plane.rows('select id from runplane.runs')).toHaveLength(1);
    expect(await plane.rows('select kind from runplane.idempotency_records')).toEqual([]);
    expect(await audits()).toEqual([]);
  });

  test('of a run that an event launched sees the event, and is no run of the event when that is repeated', async () => {
    await plane.job('of-event', [step('a', [], { input: { $eval: 'event.payload' } })]);
    await plane.services.configuration.saveRoute({ name: 'r', topic: 'docs', job: 'of-event' }, actor);
    const publish = async () => {
      const [outcome] = await plane.services.intake.publishEvents([
        { topic: 'docs', payload: { p: 1 }, idempotencyKey: 'e' },
      ]);
      if (outcome?.kind !== 'PublishEventSuccess') throw new Error(JSON.stringify(outcome));
      return outcome.runIds;
    };
    const [old] = await publish();
    await execute();
    await rerunId(old ?? '', { onlyFailed: false });
    expect(await execute()).toEqual({ a: { p: 1 } });
    expect(await publish()).toEqual([old]);
  });
});

describe('the key of a rerun', () => {
  test('makes one run, however often and at how many places at once it is used', async () => {
    const run = await plane.launch('one', { idempotencyKey: 'key' });
    await execute('a');
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, () => rerun(run, { idempotencyKey: 'key' })),
    );
    expect(new Set(outcomes.map((outcome) => 'runId' in outcome && outcome.runId)).size).toBe(1);
    expect(outcomes.filter((outcome) => 'replayed' in outcome && !outcome.replayed)).toHaveLength(1);
    await plane.services.actions.retryTasks({ filter: { runIds: [run] } }, actor);
    expect(await rerun(run, { idempotencyKey: 'key' })).toMatchObject({ replayed: true });
    expect(await plane.rows('select id from runplane.runs')).toHaveLength(2);
    expect(await audits()).toHaveLength(1);
  });

  test('conflicts with another input', async () => {
    const run = await plane.launch('one');
    await execute('a');
    const again = await rerunId(run, { idempotencyKey: 'key' });
    for (const other of [{ onlyFailed: false }, { config: {} }, { priority: 1 }]) {
      expect(await rerun(run, { idempotencyKey: 'key', ...other })).toMatchObject({
        kind: 'IdempotencyConflict',
        existingId: again,
      });
    }
    expect(await rerun(run, { idempotencyKey: 'key', onlyFailed: true })).toMatchObject({ replayed: true });
  });
});

test('a rerun and a retry of the same run at the same time are both done, one after the other', async () => {
  const runs = await Promise.all(
    Array.from({ length: 20 }, () => plane.launch('chain', { config: { doc: 'x' } })),
  );
  await execute('b');
  const outcomes = await Promise.all(
    runs.flatMap((run) => [
      rerun(run),
      plane.services.actions.retryTasks({ filter: { runIds: [run], errorCodes: ['NO'] } }, actor),
    ]),
  );
  for (const { kind } of outcomes)
    expect(['LaunchRunSuccess', 'IllegalState', 'BulkSuccess']).toContain(kind);
  await execute();
  expect(await plane.rows('select distinct status from runplane.runs')).toEqual([{ status: 'COMPLETED' }]);
});
