import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RetryPolicyInput } from '../../src/operator/types.ts';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
beforeEach(async () => {
  plane = await ControlPlane.start();
});
afterEach(() => plane.stop());

/** Seconds between a failure and the time from which its task may run again. */
async function delayAfter(code: string, retryPolicy: RetryPolicyInput): Promise<number | undefined> {
  await plane.agent('a', { retryPolicy });
  await plane.job('one', ['a']);
  const run = await plane.launch('one');
  for (const task of await plane.claim(['a']))
    await plane.report(task, { status: 'FAILED', error: { code, kind: 'TRANSIENT' } });
  const [delayed] = await plane.rows<{ seconds: number }>(
    `select extract(epoch from available_at - since)::float8 as seconds from runplane.delayed_tasks
      where run_id = $1 and reason = 'RETRY_BACKOFF'`,
    [run],
  );
  return delayed?.seconds;
}

test('a task that met a lock waits 15 s, whatever the policy of its agent', async () => {
  expect(await delayAfter('LOCK_CONFLICT', { backoff: 'LINEAR', jitter: 0 })).toBe(15);
});

test('a rule of the agent for the same code goes before the shipped one', async () => {
  const overrides = [{ code: 'LOCK_CONFLICT', retry: true, delaySeconds: 2 }];
  expect(await delayAfter('LOCK_CONFLICT', { jitter: 0, overrides })).toBe(2);
});

test('any other failure takes the delay of the policy', async () => {
  expect(await delayAfter('BOOM', { backoff: 'LINEAR', jitter: 0 })).toBe(5);
});
