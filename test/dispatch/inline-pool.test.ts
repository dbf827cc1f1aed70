import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { InlineResult } from '../../src/dispatch/handlers.ts';
import { InlinePool } from '../../src/dispatch/inline-pool.ts';
import type { Recorded } from '../../src/result/record-endings.ts';
import type { ClaimedTask } from '../../src/scheduler/claim-tasks.ts';

const taskNumber = (n: number): ClaimedTask => ({
  attemptId: `01a22a63-f09c-7b27-97e6-81e567ec880${n}`,
  taskId: `01a22a63-f09c-7b27-97e6-81e567ec881${n}`,
  runId: `01a22a63-f09c-7b27-97e6-81e567ec882${n}`,
  agentId: '01a22a63-f09c-7b27-97e6-81e567ec8830',
  agent: 'a',
  handler: 'h',
  step: 's',
  number: 1,
  input: null,
  labels: {},
  customer: null,
  correlationId: 'c',
  eventId: null,
  serialKey: null,
  checkpoint: null,
  leaseSeconds: 30,
  timeoutSeconds: null,
  startedAt: new Date(),
  expiresAt: new Date(),
  traceContext: null,
});

test('the slot of a longer task is claimed for while its result is recorded', async () => {
  let begun = 0;
  const recorded: string[] = [];
  let claims = 0;
  const work = async (): Promise<InlineResult> => {
    begun++;
    await sleep(20);
    return {};
  };
  const pool = new InlinePool(
    { pool: 'p', poolId: 'p', slots: 1, agentIds: ['a'] },
    {
      handlers: new Map([['h', work]]),
      // Results are never done.
      results: {
        record: ({ attemptId }: { attemptId: string }): Promise<Recorded> => {
          recorded.push(attemptId);
          return new Promise(() => {});
        },
      } as never,
      attemptEvents: { appendTo: () => Promise.reject(new Error('nobody tells anything')) },
      claim: () => Promise.resolve(claims < 2 ? [taskNumber(claims++)] : []),
      onDispatch: null,
      traceparent: () => '',
      onError: (error) => {
        throw error;
      },
    },
  );
  pool.wake();
  await expect.poll(() => begun).toBe(2);
  expect(recorded[0]).toBe(taskNumber(0).attemptId);
});
