import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { request, succeeded } from './client';
import {
  ClaimDocument,
  type ClaimedTaskFragment,
  HeartbeatDocument,
  ReportDocument,
  type ReportResultInput,
  TellDocument,
} from './gql/graphql';

/** What an agent is given, and what it gives: how the attempt ended, with usage and cost. */
export type Agent = (work: {
  input: unknown;
  tell(type: string, data: object): Promise<void>;
  signal: AbortSignal;
}) => Promise<Pick<ReportResultInput, 'status' | 'output' | 'error' | 'usage'>>;

/** Claims tasks and executes them, until it is told to stop: then what it has not finished is handed back. */
export async function work(agent: Agent, stop: AbortSignal): Promise<void> {
  const workerId = `typescript-${randomUUID()}`;
  while (!stop.aborted) {
    const { claimTasks } = await request(ClaimDocument, {
      input: {
        workerId,
        agents: ['summarizer'],
        limit: 20,
        waitSeconds: 2,
        leaseSeconds: 15,
        idempotencyKey: randomUUID(),
      },
    });
    const { assignments, retryAfterSeconds } = succeeded(claimTasks);
    await Promise.all(assignments.map((assignment) => execute(assignment, agent, stop)));
    await sleep(retryAfterSeconds * 1000, null, { signal: stop }).catch(() => undefined);
  }
}

async function execute(assignment: ClaimedTaskFragment, agent: Agent, stop: AbortSignal): Promise<void> {
  const { attemptId, leaseToken, input } = assignment;
  const lease = { attemptId, leaseToken };
  const unwanted = new AbortController();
  const ended = new AbortController();
  const heartbeats = keepLease(assignment, unwanted, ended.signal);
  let sequence = 0;
  const tell = async (type: string, data: object) => {
    sequence += 1;
    const events = [{ type, data }];
    succeeded((await request(TellDocument, { lease, events, firstSequence: sequence })).appendAttemptEvents);
  };
  const result = await agent({ input, tell, signal: AbortSignal.any([stop, unwanted.signal]) }).catch(
    (error: Error): Awaited<ReturnType<Agent>> => {
      if (unwanted.signal.aborted) return { status: 'CANCELLED' };
      if (stop.aborted) return { status: 'RELEASED' };
      return { status: 'FAILED', error: { code: 'CRASHED', message: error.message } };
    },
  );
  ended.abort();
  await heartbeats;
  succeeded((await request(ReportDocument, { input: { ...lease, ...result } })).reportResult);
}

/** Extends the lease long before it ends, and learns whether the work is still wanted. */
async function keepLease(
  { attemptId, leaseToken, leaseSeconds }: ClaimedTaskFragment,
  unwanted: AbortController,
  ended: AbortSignal,
): Promise<void> {
  while (!ended.aborted) {
    const { extendLeases } = await request(HeartbeatDocument, { lease: { attemptId, leaseToken } });
    if (extendLeases?.[0]?.state !== 'HELD') unwanted.abort();
    await sleep((leaseSeconds * 1000) / 3, null, { signal: ended }).catch(() => undefined);
  }
}
