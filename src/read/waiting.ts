import type { Database } from '../db/pool.ts';
import { readById } from './query.ts';
import { type WaitingRow, waitingSql } from './waiting.sql.ts';

export type WaitingReason =
  | 'DEPENDENCY'
  | 'NOT_BEFORE'
  | 'RETRY_BACKOFF'
  | 'QUEUE_PAUSED'
  | 'AGENT_PAUSED'
  | 'NO_WORKER'
  | 'CONCURRENCY_LIMIT'
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
  if (row.backoffThrottle !== null) {
    return because(
      'PROVIDER_BACKOFF',
      `Throttle ${row.backoffThrottle} is held back by its provider.`,
      row.backoffUntil,
    );
  }
  if (row.agentLimit !== null && row.agentUsed >= row.agentLimit) {
    return because(
      'CONCURRENCY_LIMIT',
      `Agent ${row.agent} runs ${row.agentUsed} of ${row.agentLimit} tasks.`,
    );
  }
  if (row.fullThrottle !== null) {
    const detail = `Throttle ${row.fullThrottle} has ${row.throttleUsed} of ${row.throttleLimit} tasks.`;
    return because('CONCURRENCY_LIMIT', detail);
  }
  if (!row.served) return because('NO_WORKER', `No live worker asks for tasks of agent ${row.agent}.`);
  return because('BEHIND_OTHERS', 'It is its turn after the tasks before it.');
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
