import type { Database } from '../db/pool.ts';
import { readById } from './query.ts';
import { type ThrottleRoom, type WaitingRow, waitingSql } from './waiting.sql.ts';

export type WaitingReason =
  | 'DEPENDENCY'
  | 'NOT_BEFORE'
  | 'RETRY_BACKOFF'
  | 'QUEUE_PAUSED'
  | 'AGENT_PAUSED'
  | 'NO_WORKER'
  | 'POOL_BUSY'
  | 'CONCURRENCY_LIMIT'
  | 'TOKEN_BUDGET'
  | 'REQUEST_RATE'
  | 'PROVIDER_BACKOFF'
  | 'SERIAL_KEY'
  | 'BEHIND_OTHERS';

/** Why a task does not run. */
export interface Waiting {
  reason: WaitingReason;
  detail: string;
  since: Date;
  /** When the reason ends by itself, as far as that is known. */
  until: Date | null;
}

/**
 * Names one reason, the first that would have to end: what the task itself waits for, then what someone stopped, then
 * what is full, then whether anyone is there to do it.
 */
function explainWaiting(row: WaitingRow): Waiting {
  const since = row.readyAt ?? row.behindKeySince ?? row.delayedSince ?? row.createdAt;
  const because = (reason: WaitingReason, detail: string, until: Date | null = null): Waiting => ({
    reason,
    detail,
    since,
    until,
  });
  if (row.blocked) return because('DEPENDENCY', `It waits for: ${(row.missingSteps ?? []).join(', ')}.`);
  if (row.delayReason !== null && row.delayIsOver === false) {
    const detail =
      row.delayReason === 'NOT_BEFORE' ? 'It was asked for later.' : 'It is repeated after a failed attempt.';
    return because(row.delayReason, detail, row.availableAt);
  }
  if (row.behindKeySince !== null)
    return because('SERIAL_KEY', `An earlier task of serial key ${row.serialKey} is not over.`);
  if (row.queuePaused) return because('QUEUE_PAUSED', `Queue ${row.queue} is paused.`);
  if (row.agentPaused) return because('AGENT_PAUSED', `Agent ${row.agent} is paused.`);
  const backoff = row.throttles.find((throttle) => throttle.backoffUntil !== null);
  if (backoff)
    return because(
      'PROVIDER_BACKOFF',
      `Throttle ${backoff.name} is held back by its provider.`,
      time(backoff.backoffUntil),
    );
  if (row.agentLimit !== null && row.agentUsed >= row.agentLimit) {
    return because(
      'CONCURRENCY_LIMIT',
      `Agent ${row.agent} runs ${row.agentUsed} of ${row.agentLimit} tasks.`,
    );
  }
  for (const throttle of row.throttles) {
    const full = explainThrottle(throttle);
    if (full) return because(full.reason, full.detail, full.until);
  }
  if (!row.served) return because('NO_WORKER', `No live worker asks for tasks of agent ${row.agent}.`);
  if (!row.hasSlot)
    return because('POOL_BUSY', `All slots that serve agent ${row.agent} are taken by running tasks.`);
  return because('BEHIND_OTHERS', 'It is its turn after the tasks before it.');
}

const time = (text: string | null): Date | null => (text === null ? null : new Date(text));

/** What of a throttle is used up for this task, by the rules of the claim. */
function explainThrottle(throttle: ThrottleRoom): Pick<Waiting, 'reason' | 'detail' | 'until'> | null {
  const { name, taskLimit, tasks, requestRoom, tokenLimit, tokenRoom, tokensNeeded } = throttle;
  if (taskLimit !== null && tasks >= taskLimit) {
    return {
      reason: 'CONCURRENCY_LIMIT',
      detail: `Throttle ${name} has ${tasks} of ${taskLimit} tasks.`,
      until: null,
    };
  }
  if (requestRoom !== null && requestRoom <= 0) {
    return {
      reason: 'REQUEST_RATE',
      detail: `Throttle ${name} has used up its requests for now.`,
      until: time(throttle.requestsUntil),
    };
  }
  if (tokenLimit === null || tokenRoom === null) return null;
  if (tokenLimit === 0 || tokensNeeded > tokenRoom) {
    return {
      reason: 'TOKEN_BUDGET',
      detail: `Throttle ${name} has ${Math.max(0, tokenRoom)} of ${tokenLimit} tokens left in its minute; this task needs ${tokensNeeded}.`,
      until: time(throttle.tokensUntil),
    };
  }
  if (!throttle.passes) {
    return {
      reason: 'TOKEN_BUDGET',
      detail: `Throttle ${name} keeps its tokens for a larger task that has waited too long to be passed.`,
      until: null,
    };
  }
  return null;
}

export class WaitingQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Tasks that do not wait are absent. */
  async ofTasks(ids: readonly string[]): Promise<Map<string, Waiting>> {
    const rows = await readById<WaitingRow>(this.#db, 'waiting-of-tasks', waitingSql, ids);
    return new Map([...rows].map(([id, row]) => [id, explainWaiting(row)]));
  }
}
