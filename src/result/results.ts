import { GroupCommit } from '../db/group-commit.ts';
import type { Database } from '../db/pool.ts';
import { transactionByKey } from '../db/transaction.ts';
import { orUnavailable } from '../db/unavailable.ts';
import { fromPublicId } from '../domain/ids.ts';
import { isLeaseToken } from '../domain/lease-token.ts';
import { isInvalidInput, parsed } from '../domain/problems.ts';
import { parseTraceparent } from '../domain/trace-context.ts';
import { preciseNow, type WorkObserver } from '../domain/work-observer.ts';
import { completeAttempts, mayCompletePlainly } from './complete-attempts.sql.ts';
import { parseReport, type Report } from './parse-result.ts';
import { type AttemptEnding, type Recorded, recordEndings } from './record-endings.ts';
import { resultsToTell, warnOfLoss } from './tell-endings.ts';
import { tokenInvalid } from './token-invalid.ts';
import type { ReportResultInput, ReportResultOutcome, Results } from './types.ts';

export interface ResultsOptions {
  db: Database;
  secretKey: Buffer;
  /** Called after each commit that may have changed something. */
  onCommit: () => void;
  /** Null: nobody hears of more than losses. */
  observer?: WorkObserver | null;
  log?: { warn(fields: object, message: string): void };
}

/** The one door by which work comes back: reports of workers and of handlers, and what the sweeper finds. */
export class ResultRecorder implements Results {
  readonly #secretKey: Buffer;
  readonly #observer: WorkObserver | null;
  /** Most reports, where nobody hears of work; null: what follows from this one has to be decided. */
  readonly #plain: GroupCommit<Report, Recorded | null>;
  readonly #group: GroupCommit<AttemptEnding, Recorded>;

  constructor({ db, secretKey, onCommit, observer = null, log }: ResultsOptions) {
    this.#secretKey = secretKey;
    this.#observer = observer;
    const heard = observer ? 'EVERYTHING' : 'LOSSES';
    this.#plain = new GroupCommit({
      maxItems: 500,
      keysOf: ({ attemptId }) => [attemptId],
      sizeOf: ({ size }) => size,
      apply: async (reports) => {
        const tasks = await completeAttempts(db, reports);
        if (tasks.size > 0) onCommit();
        return reports.map(({ attemptId }): Recorded | null => {
          const taskId = tasks.get(attemptId);
          return taskId === undefined ? null : { answer: 'APPLIED', taskId, taskStatus: 'COMPLETED' };
        });
      },
    });
    this.#group = new GroupCommit({
      maxItems: 500,
      keysOf: (ending) => [ending.attemptId],
      sizeOf: ({ report }) => report?.size ?? 0,
      apply: async (endings) => {
        const made = await transactionByKey(db, (tx) => recordEndings(tx, endings, heard));
        onCommit();
        const ended = made.attempts.filter(({ attemptId }) => made.endedNow.has(attemptId));
        if (log) for (const loss of made.losses) warnOfLoss(log, loss);
        observer?.recorded(ended, resultsToTell(endings, made));
        return made.recorded;
      },
    });
  }

  reportResults(inputs: readonly ReportResultInput[]): Promise<ReportResultOutcome[]> {
    // Of two of one attempt the first stands: the second is not looked at before.
    const last = new Map<string, Promise<ReportResultOutcome>>();
    return Promise.all(
      inputs.map((input) => {
        const before = last.get(input.attemptId);
        const outcome = before ? before.then(() => this.#report(input)) : this.#report(input);
        last.set(input.attemptId, outcome);
        return outcome;
      }),
    );
  }

  /** Records an ending that needs no check: of a handler in this process, or of the sweeper. */
  async record(given: AttemptEnding): Promise<Recorded> {
    // An observer is told from rows that only the other way reads.
    if (!this.#observer && given.report && mayCompletePlainly(given.report)) {
      const recorded = await this.#plain.submit(given.report);
      if (recorded) return recorded;
    }
    const ending =
      this.#observer && !given.told ? { ...given, told: { at: preciseNow(), traceContext: null } } : given;
    for (;;) {
      const recorded = await this.#group.submit(ending);
      if (recorded.answer !== 'AGAIN') return recorded;
    }
  }

  async drained(): Promise<void> {
    await this.#plain.drained();
    await this.#group.drained();
  }

  async #report(input: ReportResultInput): Promise<ReportResultOutcome> {
    // The token comes first: who has none learns nothing about the attempt.
    const attemptId = fromPublicId('att', input.attemptId);
    if (attemptId === null || !isLeaseToken(this.#secretKey, attemptId, input.leaseToken))
      return tokenInvalid;
    const report = parsed(() => parseReport(input, attemptId));
    if (isInvalidInput(report)) return report;
    const told = this.#observer
      ? { at: preciseNow(), traceContext: parseTraceparent(input.traceparent) }
      : undefined;
    const recorded = await orUnavailable(this.record({ attemptId, report, told }));
    if ('kind' in recorded) return recorded;
    switch (recorded.answer) {
      case 'UNKNOWN':
        return tokenInvalid;
      case 'CONFLICT':
        return {
          kind: 'ResultConflict',
          attemptId,
          message: 'This attempt already reported something else; what was stored first stands.',
        };
      case 'REFUSED':
        return recorded.problem;
      case 'NOTHING':
      case 'AGAIN':
        throw new Error(`A report cannot be answered ${recorded.answer}.`);
      default:
        return {
          kind: 'ReportResultSuccess',
          outcome: recorded.answer,
          taskId: recorded.taskId,
          attemptId,
          taskStatus: recorded.taskStatus,
        };
    }
  }
}
