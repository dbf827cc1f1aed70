import type { Database } from '../db/pool.ts';
import { readById } from './query.ts';
import { type WaitingReason, type WaitingRow, waitingSql } from './waiting.sql.ts';

/** Why a task does not run. */
export interface Waiting {
  reason: WaitingReason;
  detail: string;
  since: Date;
  /** When the reason ends by itself, as far as that is known. */
  until: Date | null;
}

/** The reason in words, and when it ends. */
function explain(row: WaitingRow): Pick<Waiting, 'detail' | 'until'> {
  const { agent, throttle } = row;
  const because = (detail: string, until: Date | null = null) => ({ detail, until });
  switch (row.reason) {
    case 'DEPENDENCY':
      return because(`It waits for: ${(row.missingSteps ?? []).join(', ')}.`);
    case 'NOT_BEFORE':
      return because('It was asked for later.', row.availableAt);
    case 'RETRY_BACKOFF':
      return because('It is repeated after a failed attempt.', row.availableAt);
    case 'SERIAL_KEY':
      return because(`An earlier task of serial key ${row.serialKey} is not over.`);
    case 'QUEUE_PAUSED':
      return because(`Queue ${row.queue} is paused.`);
    case 'AGENT_PAUSED':
      return because(`Agent ${agent} is paused.`);
    case 'PROVIDER_BACKOFF':
      return because(`Throttle ${row.backoff} is held back by its provider.`, row.backoffUntil);
    case 'CONCURRENCY_LIMIT':
      return because(
        row.stopped
          ? `Agent ${agent} runs ${row.agentUsed} of ${row.agentLimit} tasks.`
          : `Throttle ${throttle} has ${row.tasks} of ${row.taskLimit} tasks.`,
      );
    case 'REQUEST_RATE':
      return because(`Throttle ${throttle} has used up its requests for now.`, row.throttleUntil);
    case 'TOKEN_BUDGET':
      return because(explainTokens(row), row.throttleUntil);
    case 'NO_WORKER':
      return because(
        row.dispatchKind === 'INLINE'
          ? `No live server has the handler of agent ${agent}.`
          : `No live worker asks for tasks of agent ${agent}.`,
      );
    case 'POOL_BUSY':
      return because(`All slots that serve agent ${agent} are taken by running tasks.`);
    case 'BEHIND_OTHERS':
      return because(
        row.nextSinceAskSeconds === null
          ? 'It is its turn after the tasks before it.'
          : `It is the next task of agent ${agent}; a worker asked for such ${row.nextSinceAskSeconds} s ago.`,
      );
  }
}

function explainTokens({ throttle, tokenLimit, tokenRoom, tokensNeeded }: WaitingRow): string {
  const room = tokenRoom ?? 0;
  return tokenLimit === 0 || (tokensNeeded ?? 0) > room
    ? `Throttle ${throttle} has ${Math.max(0, room)} of ${tokenLimit} tokens left in its minute; this task needs ${tokensNeeded}.`
    : `Throttle ${throttle} keeps its tokens for a larger task that has waited too long to be passed.`;
}

export class WaitingQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Tasks that do not wait are absent. */
  async ofTasks(ids: readonly string[]): Promise<Map<string, Waiting>> {
    const rows = await readById<WaitingRow>(this.#db, 'waiting-of-tasks', waitingSql, ids);
    return new Map(
      [...rows].map(([id, row]) => [id, { reason: row.reason, since: row.since, ...explain(row) }]),
    );
  }
}
