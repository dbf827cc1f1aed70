import { toPublicId } from '../domain/ids.ts';
import type { TracedWork } from '../domain/trace-context.ts';
import type { Report } from '../result/parse-result.ts';
import { parseReport } from '../result/parse-result.ts';
import type { AttemptEvents, ReportResultInput } from '../result/types.ts';
import type { ClaimedTask } from '../scheduler/claim-tasks.ts';
import { HandlerError, type InlineHandler, type InlineTask } from './handlers.ts';

/** Why a handler's signal was aborted. */
export type AbortReason = 'CANCELLED' | 'TIMED_OUT' | 'LEASE_LOST' | 'SHUTDOWN';

/** One attempt in the hands of a handler. */
export class Execution {
  readonly task: ClaimedTask;
  /** When its lease was last extended, by this process's clock. */
  heardAt = performance.now();
  /** In milliseconds since 1970. */
  readonly claimedAt = performance.timeOrigin + this.heardAt;
  readonly #controller = new AbortController();
  readonly #events: Pick<AttemptEvents, 'appendTo'>;
  readonly #traceparent: (work: TracedWork) => string;
  /** Appends that are under way. */
  readonly #appends = new Set<Promise<unknown>>();

  constructor(
    task: ClaimedTask,
    events: Pick<AttemptEvents, 'appendTo'>,
    traceparent: (work: TracedWork) => string,
  ) {
    this.task = task;
    this.#events = events;
    this.#traceparent = traceparent;
  }

  get aborted(): AbortReason | null {
    return this.#controller.signal.aborted ? (this.#controller.signal.reason as AbortReason) : null;
  }

  abort(reason: AbortReason): void {
    this.#controller.abort(reason);
  }

  /**
   * What to report: the handler's result, or what its error says. Null when nobody waits for it any more. A handler
   * that ignores its signal is left alone. One that was aborted before it began, or lacks, hands its task back.
   */
  async run(handler: InlineHandler | null): Promise<Report | null> {
    if (this.aborted || !handler) return this.#aborted(this.aborted ?? 'SHUTDOWN');
    const { signal } = this.#controller;
    const { timeoutSeconds } = this.task;
    const timer =
      timeoutSeconds === null ? null : setTimeout(() => this.abort('TIMED_OUT'), timeoutSeconds * 1000);
    try {
      const running = handler(toInlineTask(this.task, this.#append, this.#traceparent), signal);
      const result = running instanceof Promise ? await Promise.race([running, abortion(signal)]) : running;
      // Streams of events end with the attempt: what it told comes before.
      if (this.#appends.size > 0) await Promise.allSettled(this.#appends);
      return this.#report({ status: 'COMPLETED', ...result });
    } catch (error) {
      await Promise.allSettled(this.#appends);
      if (this.aborted) return this.#aborted(this.aborted);
      return this.#report({ status: 'FAILED', error: describe(error) });
    } finally {
      if (timer) clearTimeout(timer);
    }
  }

  readonly #append: InlineTask['appendEvents'] = (events, firstSequence) => {
    const append = this.#events
      .appendTo(this.task.attemptId, { events, firstSequence: firstSequence ?? null })
      .then((outcome) => {
        if (outcome.kind === 'AppendAttemptEventsSuccess') return outcome.lastSequence;
        throw appendError(outcome);
      });
    this.#appends.add(append);
    // A handler that does not wait for it does not hear of its failure either.
    const settled = (): void => void this.#appends.delete(append);
    append.then(settled, settled);
    return append;
  };

  /** A lost lease is over; a timeout is ended by the sweeper. What the handler knows adds nothing. */
  #aborted(reason: AbortReason): Report | null {
    if (reason === 'LEASE_LOST' || reason === 'TIMED_OUT') return null;
    return this.#report({ status: reason === 'CANCELLED' ? 'CANCELLED' : 'RELEASED' });
  }

  #report(result: Omit<ReportResultInput, 'attemptId' | 'leaseToken'>): Report {
    try {
      return parseReport(result, this.task.attemptId);
    } catch (error) {
      // What the handler returned cannot be stored; saying so is the result.
      return refusedReport(this.task.attemptId, describe(error).message);
    }
  }
}

/** Of an attempt whose handler returned what cannot be a result. */
export const refusedReport = (attemptId: string, message: string): Report =>
  parseReport(
    { status: 'FAILED', error: { code: 'INVALID_RESULT', kind: 'INVALID_OUTPUT', message } },
    attemptId,
  );

const abortion = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const aborted = (): void => reject(new Error(String(signal.reason)));
    if (signal.aborted) aborted();
    else signal.addEventListener('abort', aborted, { once: true });
  });

function describe(error: unknown) {
  if (error instanceof HandlerError) {
    const { code, message, kind, retryAfterSeconds } = error;
    return { code, message, kind, retryAfterSeconds };
  }
  return {
    code: 'HANDLER_ERROR',
    message: error instanceof Error ? error.message : String(error),
    kind: 'TRANSIENT' as const,
  };
}

/** Events that are refused are so again; what cannot be stored now may be later. */
const appendError = ({ kind, message }: { kind: string; message: string }): HandlerError =>
  kind === 'InvalidInput'
    ? new HandlerError('INVALID_EVENTS', message, { kind: 'INVALID_OUTPUT' })
    : new HandlerError('HANDLER_ERROR', message);

/** Public ids are made when a handler asks for them: most ask for none. */
const toInlineTask = (
  task: ClaimedTask,
  appendEvents: InlineTask['appendEvents'],
  traceparent: (work: TracedWork) => string,
): InlineTask => ({
  appendEvents,
  get attemptId() {
    return toPublicId('att', task.attemptId);
  },
  get taskId() {
    return toPublicId('task', task.taskId);
  },
  get runId() {
    return toPublicId('run', task.runId);
  },
  get eventId() {
    return task.eventId === null ? null : toPublicId('evt', task.eventId);
  },
  get traceparent() {
    return traceparent(task);
  },
  agent: task.agent,
  step: task.step,
  number: task.number,
  input: task.input,
  labels: task.labels,
  customer: task.customer,
  correlationId: task.correlationId,
  serialKey: task.serialKey,
  checkpoint: task.checkpoint,
});
