import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Assignment } from '../../src/dispatch/types.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
});
afterEach(() => plane.stop());

async function claimOne(): Promise<Assignment> {
  const [assignment] = await plane.claim(['a'], 1);
  if (!assignment) throw new Error('nothing was claimed');
  return assignment;
}

test('text of models is repaired, and the attempt says so', async () => {
  await plane.launch('one');
  await plane.report(await claimOne(), { status: 'COMPLETED', output: { text: 'a\u0000b\ud800' } });
  expect(
    await plane.rows(
      'select t.output, a.sanitized from runplane.tasks t join runplane.attempts a on a.task_id = t.id',
    ),
  ).toEqual([{ output: { text: 'a\ufffdb\ufffd' }, sanitized: true }]);
});

test('a result is known again by its text as it was repaired', async () => {
  type Result = Parameters<typeof plane.report>[1];
  const error = (message: string): Result => ({ status: 'FAILED', error: { code: 'NO', message } });
  const results: [Result, Result, Result][] = [
    [
      { status: 'COMPLETED', output: { text: 'a\u0000' } },
      { status: 'COMPLETED', output: { text: 'a\ufffd' } },
      { status: 'COMPLETED', output: { text: 'a' } },
    ],
    [error('b\ud800'), error('b\ufffd'), error('b')],
    // What is cut off says nothing any more.
    [error('c'.repeat(9000)), error('c'.repeat(8192)), error('c'.repeat(8191))],
  ];
  for (const [given, repaired, other] of results) {
    await plane.launch('one', { steps: [{ step: 'a', maxAttempts: 1 }] });
    const attempt = await claimOne();
    expect(await plane.report(attempt, given)).toMatchObject({ outcome: 'APPLIED' });
    expect(await plane.report(attempt, given)).toMatchObject({ outcome: 'REPLAYED' });
    expect(await plane.report(attempt, repaired)).toMatchObject({ outcome: 'REPLAYED' });
    expect(await plane.report(attempt, other)).toMatchObject({ kind: 'ResultConflict' });
  }
});

test('metadata of what was made is repaired alike', async () => {
  await plane.launch('one');
  const materializations = [{ assetKey: 'text', metadata: { text: 'a\u0000' } }];
  await plane.report(await claimOne(), { status: 'COMPLETED', materializations });
  expect(
    await plane.rows(
      'select m.metadata, a.sanitized from runplane.materializations m join runplane.attempts a on a.id = m.attempt_id',
    ),
  ).toEqual([{ metadata: { text: 'a\ufffd' }, sanitized: true }]);
});
