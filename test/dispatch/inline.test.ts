import { afterEach, expect, test } from 'vitest';
import { HandlerError, type InlineHandler } from '../../src/dispatch/handlers.ts';
import type { SaveAgentInput } from '../../src/operator/types.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import type { TestDatabase } from '../support/database.ts';

let plane: ControlPlane;
afterEach(() => plane.stop());

/** A plane with one inline agent and its job. */
async function startWith(
  handler: InlineHandler,
  agent: Partial<SaveAgentInput> = {},
  database?: TestDatabase,
): Promise<void> {
  plane = await ControlPlane.start({ scheduler: true, handlers: { h: handler }, database });
  await plane.agent('a', { dispatch: { inline: { handler: 'h' } }, leaseSeconds: 5, ...agent });
  await plane.job('one', ['a']);
}

async function launchAndWait(status: string, input: object = {}): Promise<string> {
  const after = await plane.services.changeLog.currentCursor();
  const runId = await plane.launch('one', input);
  for await (const { changes } of plane.services.changeLog.taskChanges({ runIds: [runId] }, after)) {
    if (changes.some((change) => change.toStatus === status)) return runId;
  }
  throw new Error(`the run ended without ${status}: ${JSON.stringify(await plane.steps(runId))}`);
}

test('a handler gets its task and its result is stored', async () => {
  await startWith((task) => ({
    output: { got: task.input, step: task.step, number: task.number },
    usage: [{ model: 'm', outputTokens: 2 }],
    confidence: 0.5,
  }));
  await launchAndWait('COMPLETED', { config: { x: 1 } });
  expect(await plane.rows('select output, confidence from runplane.tasks')).toEqual([
    { output: { got: { x: 1 }, step: 'a', number: 1 }, confidence: 0.5 },
  ]);
  expect(await plane.rows('select output_tokens from runplane.usage')).toEqual([{ output_tokens: 2 }]);
});

test('a handler tells what it does by the door of workers, and all of it before its result', async () => {
  const sequences: number[] = [];
  await startWith(async (task) => {
    sequences.push(await task.appendEvents([{ type: 'thought', data: { content: 'first' } }]));
    const repeated = [
      { type: 'thought', data: { content: 'first' } },
      { type: 'log', data: 'second' },
    ];
    sequences.push(await task.appendEvents(repeated, 1), await task.appendEvents(repeated, 1));
    // Nobody waits for this one but the result.
    void task.appendEvents([{ type: 'log', data: 'last' }]);
    return {};
  });
  const after = await plane.services.changeLog.currentCursor();
  const runId = await plane.launch('one');
  const told: [number, unknown][] = [];
  for await (const { changes } of await plane.services.changeLog.attemptEvents({ runId }, after))
    told.push(...changes.map(({ sequence, data }): [number, unknown] => [sequence, data]));
  expect(told).toEqual([
    [1, { content: 'first' }],
    [2, 'second'],
    [3, 'last'],
  ]);
  expect(sequences).toEqual([1, 2, 2]);
});

test('events of a handler that are refused fail its attempt and say why, unless it goes on without them', async () => {
  const tooLarge = [
    { type: 'log', data: 'fits' },
    { type: 'log', data: 'x'.repeat(70_000) },
  ];
  await startWith(
    async (task) => {
      const append = task.appendEvents(tooLarge);
      if (task.number === 1) await append;
      return { output: await append.catch((error: unknown) => (error as HandlerError).code) };
    },
    { retryPolicy: { maxAttempts: 2, initialDelaySeconds: 0, jitter: 0 } },
  );
  await launchAndWait('COMPLETED');
  expect(await plane.rows('select error_code, error_message from runplane.attempts order by number')).toEqual(
    [
      { error_code: 'INVALID_EVENTS', error_message: expect.stringContaining('events[1].data') },
      { error_code: null, error_message: null },
    ],
  );
  expect(await plane.rows('select output from runplane.tasks')).toEqual([{ output: 'INVALID_EVENTS' }]);
  expect(await plane.rows('select 1 from runplane.attempt_events')).toEqual([]);
});

test('what a handler throws decides about a retry', async () => {
  let calls = 0;
  await startWith(() => {
    calls++;
    if (calls === 1) throw new Error('plain');
    throw new HandlerError('BAD_DOCUMENT', 'cannot be mended', { kind: 'PERMANENT' });
  });
  await launchAndWait('FAILED');
  expect(
    await plane.rows('select error_code, error_kind, error_message from runplane.attempts order by number'),
  ).toEqual([
    { error_code: 'HANDLER_ERROR', error_kind: 'TRANSIENT', error_message: 'plain' },
    { error_code: 'BAD_DOCUMENT', error_kind: 'PERMANENT', error_message: 'cannot be mended' },
  ]);
});

test('a result that cannot be stored fails the attempt and says why', async () => {
  await startWith(() => ({ output: { deep: JSON.parse('['.repeat(80) + ']'.repeat(80)) as unknown } }), {
    retryPolicy: { maxAttempts: 1 },
  });
  await launchAndWait('FAILED');
  expect(await plane.rows('select error_code, error_message from runplane.tasks')).toEqual([
    { error_code: 'INVALID_RESULT', error_message: expect.stringContaining('64') },
  ]);
});

test('a cancel reaches the handler by its signal', async () => {
  let reason: unknown;
  await startWith(
    (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reason = signal.reason;
          reject(new Error('stopped'));
        });
      }),
  );
  const runId = await launchAndWait('PROCESSING');
  const cancelled = await plane.services.actions.cancelRun({ runId }, actor);
  expect(cancelled).toMatchObject({ runStatus: 'CANCELLING' });
  for await (const { changes } of plane.services.changeLog.runChanges({ ids: [runId] }, null))
    if (changes.some((change) => change.toStatus === 'CANCELLED')) break;
  expect(reason).toBe('CANCELLED');
});

test('a handler that runs too long is ended and the attempt counts', async () => {
  let aborted = false;
  await startWith(
    (_, signal) => new Promise(() => signal.addEventListener('abort', () => (aborted = true))),
    { timeoutSeconds: 1, retryPolicy: { maxAttempts: 1 } },
  );
  await launchAndWait('FAILED');
  expect(aborted).toBe(true);
  expect(await plane.rows('select status, counted, error_code from runplane.attempts')).toEqual([
    { status: 'TIMED_OUT', counted: true, error_code: 'TIMED_OUT' },
  ]);
});

test('a lost lease aborts the handler, and the task is executed again', async () => {
  const reasons: unknown[] = [];
  await startWith(({ number }, signal) =>
    number > 1
      ? { output: 'second' }
      : new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason);
            reject(new Error('lost'));
          });
        }),
  );
  await launchAndWait('PROCESSING');
  const after = await plane.services.changeLog.currentCursor();
  await plane.rows(
    `update runplane.leases set lease_seconds = 0, expires_at = runplane.clock() - interval '1 second'`,
  );
  for await (const { changes } of plane.services.changeLog.taskChanges({ statuses: ['COMPLETED'] }, after))
    if (changes.length > 0) break;
  expect(await plane.rows('select status from runplane.attempts order by number')).toEqual([
    { status: 'LOST' },
    { status: 'COMPLETED' },
  ]);
  await expect.poll(() => reasons, { timeout: 10_000 }).toEqual(['LEASE_LOST']);
});

test('no more handlers run at once than the pool has slots', async () => {
  let running = 0;
  let most = 0;
  const { database, services } = await ControlPlane.start();
  await services.configuration.savePool({ name: 'core', slotsPerReplica: 3 }, actor);
  await services.configuration.saveQueue({ name: 'default', pool: 'core', sharedWeight: 0 }, actor);
  await services.stop();
  const handler = async () => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, 5));
    running--;
    return {};
  };
  await startWith(handler, {}, database);
  const after = await plane.services.changeLog.currentCursor();
  await plane.services.intake.launchRuns(Array.from({ length: 60 }, () => ({ job: 'one' })));
  let ended = 0;
  for await (const { changes } of plane.services.changeLog.runChanges({ statuses: ['COMPLETED'] }, after)) {
    ended += changes.length;
    if (ended >= 60) break;
  }
  expect(most).toBe(3);
});

test('a handler spawns tasks with its result; when it asks for the impossible its attempt fails', async () => {
  await startWith(({ step, input }) => {
    const { agent } = input as { agent: string };
    return step === 'a' ? { spawn: [{ step: 'child', agent, input: { agent: 'a' } }] } : { output: step };
  });
  const after = await plane.services.changeLog.currentCursor();
  await plane.launch('one', { config: { agent: 'a' } });
  for await (const { changes } of plane.services.changeLog.runChanges({ statuses: ['COMPLETED'] }, after))
    if (changes.length > 0) break;
  const bad = await launchAndWait('FAILED', { config: { agent: 'nobody' } });
  expect(await plane.steps(bad)).toEqual({ a: 'FAILED' });
  expect(
    await plane.rows('select error_code, error_message from runplane.tasks where run_id = $1', [bad]),
  ).toEqual([{ error_code: 'INVALID_RESULT', error_message: expect.stringContaining('nobody') }]);
  expect(await plane.rows('select output from runplane.tasks where parent_task_id is not null')).toEqual([
    { output: 'child' },
  ]);
});
