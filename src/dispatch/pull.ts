import { LongPolls } from '../changelog/long-polls.ts';
import type { Database } from '../db/pool.ts';
import { orUnavailable } from '../db/unavailable.ts';
import { fromPublicId } from '../domain/ids.ts';
import { checkJson } from '../domain/json.ts';
import { isLeaseToken, leaseToken } from '../domain/lease-token.ts';
import { limits } from '../domain/limits.ts';
import { InvalidInputError, isInvalidInput, parsed } from '../domain/problems.ts';
import { parseInteger, parseNumber, parseOptionalInteger } from '../domain/scalars.ts';
import { parseName, parseOptionalName } from '../domain/text.ts';
import { traceparentOf } from '../domain/trace-context.ts';
import { preciseNow, type WorkObserver } from '../domain/work-observer.ts';
import { parseUsage } from '../result/parse-usage.ts';
import { type ClaimedTask, type ClaimRequest, claimTasks } from '../scheduler/claim-tasks.ts';
import type { ReadyWatch } from '../scheduler/ready-watch.ts';
import { findAgents } from './agents-to-claim.sql.ts';
import type { Heartbeat, Heartbeats } from './heartbeats.ts';
import type {
  Assignment,
  ClaimTasksInput,
  ClaimTasksOutcome,
  ExtendLeaseInput,
  LeaseStatus,
  PullDispatch,
} from './types.ts';
import type { WorkerRegistry } from './worker-registry.ts';

export interface PullDispatchOptions {
  db: Database;
  ready: ReadyWatch;
  heartbeats: Heartbeats;
  workers: WorkerRegistry;
  secretKey: Buffer;
  /** Called after each commit that claimed something. */
  onCommit: () => void;
  observer: WorkObserver | null;
}

interface Claim {
  workerKey: string;
  name: string | null;
  client: string | null;
  agents: string[] | null;
  pool: string | null;
  limit: number;
  slots: number | null;
  waitMs: number;
  leaseSeconds: number | null;
  claimKey: string | null;
}

/** Dispatch to workers that ask for their work. */
export function createPullDispatch(options: PullDispatchOptions): PullDispatch & {
  drain(): void;
  readonly longPolls: number;
} {
  const { db, ready, heartbeats, workers, secretKey, onCommit, observer } = options;
  const polls = new LongPolls();

  const claim = async (input: ClaimTasksInput, clientGone?: AbortSignal): Promise<ClaimTasksOutcome> => {
    const request = parsed(() => parseClaim(input));
    if (isInvalidInput(request)) return request;
    const found = await findAgents(db, request);
    if (isInvalidInput(found)) return found;
    const { poolId, agents } = found;
    const { workerKey, client, slots } = request;
    const agentIds = agents.map(({ id }) => id);
    const workerId = await workers.asked(
      { workerKey, name: request.name ?? workerKey, client, slots },
      { poolId, agentIds: request.agents === null ? null : agentIds },
    );
    // Without a key it is still a pull worker's.
    const claimKey = request.claimKey ?? '';
    return polls.run(request.waitMs, clientGone, (end) =>
      claimUntil(end, { ...request, claimKey, agentIds, poolId, workerId }, clientGone),
    );
  };

  const claimUntil = async (
    end: AbortSignal,
    request: Pick<Claim, 'waitMs'> & ClaimRequest,
    clientGone?: AbortSignal,
  ): Promise<ClaimTasksOutcome> => {
    for (;;) {
      // A client that left would hold leases that nobody works on; a server that stops gives out nothing more.
      if (clientGone?.aborted || polls.draining)
        return { kind: 'ClaimTasksSuccess', assignments: [], retryAfterSeconds: 1 };
      const work = waitForWork(ready, request.agentIds, end);
      try {
        const startedAt = observer ? preciseNow() : 0;
        const claimed = await claimTasks(db, request);
        if (claimed.length > 0) {
          onCommit();
          const assignments = claimed.map((task) => assignment(secretKey, task, observer));
          if (observer) tellClaim(observer, claimed, request.workerId, startedAt);
          return { kind: 'ClaimTasksSuccess', assignments, retryAfterSeconds: 0 };
        }
        if (end.aborted) {
          return {
            kind: 'ClaimTasksSuccess',
            assignments: [],
            retryAfterSeconds: request.waitMs > 0 ? 0 : 1,
          };
        }
        await work.there;
      } finally {
        // Also of a claim that failed: it would be woken for ever.
        work.leave();
      }
    }
  };

  const beat = async (attemptId: string, heartbeat: Heartbeat | null): Promise<LeaseStatus> => {
    const held = heartbeat && (await heartbeats.beat(heartbeat));
    return {
      attemptId,
      state: held ? (held.cancelDeadline ? 'CANCEL_REQUESTED' : 'HELD') : 'STALE',
      leaseSeconds: held?.leaseSeconds ?? null,
      leaseExpiresAt: held?.expiresAt ?? null,
      cancelDeadline: held?.cancelDeadline ?? null,
    };
  };

  return {
    claimTasks: (input, clientGone) => orUnavailable(claim(input, clientGone)),
    extendLeases: async (leases) => {
      // All are checked before the first is extended: a refused call has done nothing.
      const checked = leases.map((lease, i): [string, Heartbeat | null] => {
        const attemptId = fromPublicId('att', lease.attemptId);
        const known = attemptId !== null && isLeaseToken(secretKey, attemptId, lease.leaseToken);
        return [lease.attemptId, known ? parseHeartbeat(lease, attemptId, `leases[${i}]`) : null];
      });
      return Promise.all(checked.map(([attemptId, heartbeat]) => beat(attemptId, heartbeat)));
    },
    drain: () => polls.drain(),
    get longPolls() {
      return polls.underWay;
    },
  };
}

/** Settles when there may be work, or at the end of the wait. Begun before the claim, so that none slips between. */
function waitForWork(
  ready: ReadyWatch,
  agentIds: readonly string[],
  end: AbortSignal,
): { there: Promise<void>; leave: () => void } {
  let leave = (): void => {};
  const there = new Promise<void>((resolve) => {
    if (end.aborted) return resolve();
    const unwatch = ready.add({ agentIds, wake: () => leave() });
    leave = () => {
      unwatch();
      end.removeEventListener('abort', leave);
      resolve();
    };
    end.addEventListener('abort', leave);
  });
  return { there, leave: () => leave() };
}

function parseClaim(input: ClaimTasksInput): Claim {
  if ((input.agents ?? null) === null && (input.pool ?? null) === null) {
    throw new InvalidInputError('agents', 'Name the agents, the pool, or both.');
  }
  return {
    workerKey: parseName(input.workerId, 'workerId'),
    name: parseOptionalName(input.name, 'name'),
    client: parseOptionalName(input.client, 'client'),
    agents: input.agents?.map((name, i) => parseName(name, `agents[${i}]`)) ?? null,
    pool: parseOptionalName(input.pool, 'pool'),
    limit: parseInteger(input.limit, 'limit', 1, limits.claim),
    slots: parseOptionalInteger(input.slots, 'slots', 0, limits.slots),
    waitMs: Math.round(parseNumber(input.waitSeconds ?? 0, 'waitSeconds', 0, limits.waitSeconds) * 1000),
    leaseSeconds: parseOptionalInteger(
      input.leaseSeconds,
      'leaseSeconds',
      limits.leaseSeconds.min,
      limits.leaseSeconds.max,
    ),
    claimKey: parseOptionalName(input.idempotencyKey, 'idempotencyKey'),
  };
}

function parseHeartbeat(input: ExtendLeaseInput, attemptId: string, at: string): Heartbeat {
  const progress = input.progress == null ? null : parseNumber(input.progress, `${at}.progress`, 0, 1);
  const usage = parseUsage(input.usage, `${at}.usage`);
  const unnamed = usage.findIndex((entry) => entry.responseId === null);
  if (unnamed >= 0) {
    throw new InvalidInputError(
      `${at}.usage[${unnamed}].responseId`,
      'Usage in a heartbeat needs a responseId, so that it counts once.',
    );
  }
  const checkpoint = input.checkpoint ?? null;
  return {
    attemptId,
    progress,
    checkpoint:
      checkpoint === null
        ? null
        : {
            value: checkJson(checkpoint, `${at}.checkpoint`, {
              repair: true,
              maxBytes: limits.checkpointBytes,
            }).value,
          },
    usage,
  };
}

/** Who claims has its tasks with the answer. */
function tellClaim(
  observer: WorkObserver,
  tasks: readonly ClaimedTask[],
  workerId: string,
  startedAt: number,
): void {
  const claimedAt = preciseNow();
  observer.claimed({ tasks, workerId, startedAt });
  for (const task of tasks) observer.dispatched({ task, to: 'WORKER', workerId, claimedAt });
}

function assignment(secretKey: Buffer, task: ClaimedTask, observer: WorkObserver | null): Assignment {
  const { expiresAt, handler: _, traceContext: __, ...rest } = task;
  return {
    ...rest,
    leaseToken: leaseToken(secretKey, task.attemptId),
    leaseExpiresAt: expiresAt,
    traceparent: observer ? observer.traceparent(task) : traceparentOf(task),
  };
}
