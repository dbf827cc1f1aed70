import { afterEach, beforeEach, expect, test } from 'vitest';
import { Database } from '../../src/db/pool.ts';
import type { AdmittedWork } from '../../src/domain/work-observer.ts';
import { createActions } from '../../src/operator/actions.ts';
import type { RerunInput } from '../../src/operator/repeat-types.ts';
import { connectionTo } from '../support/connection.ts';
import { actor, ControlPlane } from '../support/control-plane.ts';
import { openDatabase } from '../support/database.ts';
import { silentObserver } from '../support/silent-observer.ts';

let plane: ControlPlane;
let run: string;
/** What is told, in its order. */
let told: AdmittedWork[];
beforeEach(async () => {
  plane = await ControlPlane.start();
  told = [];
  await plane.agent('a');
  await plane.job('one', [{ name: 'a', agent: 'a', input: { $eval: 'config.doc' } }]);
  run = await plane.launch('one', { config: { doc: 1 }, correlationId: 'c' });
  for (const task of await plane.claim(['a'])) await plane.report(task, { status: 'COMPLETED' });
});
afterEach(() => plane.stop());

/** A rerun in a process that reaches the database by connections of its own, until the first commit. */
async function rerunAlone(input: Partial<RerunInput> = {}, db = openDatabase(plane.database.url)) {
  let closed: Promise<void> | null = null;
  const actions = createActions({
    db,
    onCommit: () => {
      closed = db.close();
    },
    epoch: plane.database.installation.epoch,
    observer: { ...silentObserver, admitted: (work) => void told.push(work) },
    cancelGraceSeconds: 30,
  });
  const outcome = await actions.rerun({ runId: run, onlyFailed: false, ...input }, actor);
  await (closed ?? db.close());
  return outcome;
}

test('a rerun that is committed is answered and told as one, though the database is gone then', async () => {
  const outcome = await rerunAlone();
  if (outcome.kind !== 'LaunchRunSuccess') throw new Error(outcome.message);
  expect(await plane.run(outcome.runId)).toMatchObject({ status: 'QUEUED' });
  const { runId } = outcome;
  expect(told).toMatchObject([{ id: runId, runIds: [runId], correlationId: 'c', replayed: false }]);
});

test('one that is given again is told as the run that it made', async () => {
  const first = await rerunAlone({ idempotencyKey: 'k' });
  expect(await rerunAlone({ idempotencyKey: 'k' })).toEqual({ ...first, replayed: true });
  expect(told).toMatchObject([
    { correlationId: 'c', replayed: false },
    { correlationId: 'c', replayed: true, runIds: told[0]?.runIds },
  ]);
});

test('one that cannot be done now is answered and told as unavailable', async () => {
  const nobodyListens = new URL(plane.database.url);
  nobodyListens.port = '1';
  const away = new Database({
    ...connectionTo(nobodyListens.toString(), null),
    applicationName: 'runplane-test',
    onError: () => {},
  });
  expect(await rerunAlone({}, away)).toMatchObject({ kind: 'Unavailable' });
  expect(told).toMatchObject([{ problem: 'Unavailable', correlationId: null, runIds: [] }]);
});

test('one that is refused is told with the correlation id of the old run, where there is one', async () => {
  await rerunAlone({ idempotencyKey: 'k' });
  await rerunAlone({ idempotencyKey: 'k', priority: 7 });
  await rerunAlone({ onlyFailed: true });
  await rerunAlone({ config: { other: 1 } });
  await rerunAlone({ runId: crypto.randomUUID() });
  expect(told.map(({ problem, correlationId }) => [problem, correlationId])).toEqual([
    [null, 'c'],
    ['IdempotencyConflict', 'c'],
    ['IllegalState', 'c'],
    ['InvalidInput', 'c'],
    ['NotFound', null],
  ]);
  expect(await plane.rows('select id from runplane.runs')).toHaveLength(2);
});
