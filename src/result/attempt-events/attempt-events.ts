import { GroupCommit } from '../../db/group-commit.ts';
import type { Database, Queryable } from '../../db/pool.ts';
import { transactionByKey } from '../../db/transaction.ts';
import { orUnavailable } from '../../db/unavailable.ts';
import { fromPublicId } from '../../domain/ids.ts';
import { isLeaseToken } from '../../domain/lease-token.ts';
import { isInvalidInput, parsed } from '../../domain/problems.ts';
import { tokenInvalid } from '../token-invalid.ts';
import type { AppendAttemptEventsInput, AppendAttemptEventsOutcome, AttemptEvents } from '../types.ts';
import {
  dropUnusedCounts,
  lockAttempts,
  lockCounts,
  type NumberedEvent,
  writeEvents,
} from './append-events.sql.ts';
import { decideAppend } from './decide-append.ts';
import { type Append, parseAppend } from './parse-append.ts';

export interface AttemptEventsOptions {
  db: Database;
  secretKey: Buffer;
  /** Called after each commit. */
  onCommit: () => void;
}

/** Appends that share a transaction. */
const maxAppends = 100;

/** What agents tell of their progress. Appends of one attempt follow each other, those of many share a transaction. */
export class AttemptEventRecorder implements AttemptEvents {
  readonly #secretKey: Buffer;
  readonly #group: GroupCommit<Append, AppendAttemptEventsOutcome>;

  constructor({ db, secretKey, onCommit }: AttemptEventsOptions) {
    this.#secretKey = secretKey;
    this.#group = new GroupCommit({
      maxItems: maxAppends,
      keysOf: ({ attemptId }) => [attemptId],
      sizeOf: ({ events }) => events.reduce((sum, { bytes }) => sum + bytes, 0),
      apply: async (appends) => {
        const outcomes = await transactionByKey(db, (tx) => append(tx, appends));
        onCommit();
        return outcomes;
      },
    });
  }

  async append(input: AppendAttemptEventsInput): Promise<AppendAttemptEventsOutcome> {
    // The token comes first: who has none learns nothing about the attempt.
    const { attemptId: id, leaseToken } = input.lease;
    const attemptId = fromPublicId('att', id);
    if (attemptId === null || !isLeaseToken(this.#secretKey, attemptId, leaseToken)) return tokenInvalid;
    return this.appendTo(attemptId, input);
  }

  async appendTo(
    attemptId: string,
    input: Omit<AppendAttemptEventsInput, 'lease'>,
  ): Promise<AppendAttemptEventsOutcome> {
    const request = parsed(() => parseAppend(input, attemptId));
    return isInvalidInput(request) ? request : orUnavailable(this.#group.submit(request));
  }

  drained(): Promise<void> {
    return this.#group.drained();
  }
}

async function append(tx: Queryable, appends: readonly Append[]): Promise<AppendAttemptEventsOutcome[]> {
  const known = await lockAttempts(
    tx,
    appends.map(({ attemptId }) => attemptId),
  );
  const counts = await lockCounts(tx, [...known.keys()]);
  const fresh: NumberedEvent[] = [];
  const outcomes = appends.map((each): AppendAttemptEventsOutcome => {
    const attempt = known.get(each.attemptId);
    const stored = counts.get(each.attemptId);
    if (!attempt || !stored) return tokenInvalid;
    const decided = decideAppend(stored, each);
    if ('kind' in decided) return decided;
    const { events, lastSequence } = decided;
    for (const [i, event] of events.entries())
      fresh.push({ ...attempt, ...event, sequence: stored.lastSequence + i + 1 });
    return { kind: 'AppendAttemptEventsSuccess', lastSequence };
  });
  if (fresh.length > 0) await writeEvents(tx, fresh);
  const told = new Set(fresh.map(({ attemptId }) => attemptId));
  const silent = [...counts].filter(([id, { lastSequence }]) => lastSequence === 0 && !told.has(id));
  if (silent.length > 0)
    await dropUnusedCounts(
      tx,
      silent.map(([id]) => id),
    );
  return outcomes;
}
