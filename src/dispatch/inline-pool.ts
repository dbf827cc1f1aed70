import { setTimeout as delay } from 'node:timers/promises';
import { toPublicId } from '../domain/ids.ts';
import type { TracedWork } from '../domain/trace-context.ts';
import { isUnavailable } from '../domain/unavailable.ts';
import type { Report } from '../result/parse-result.ts';
import type { ResultRecorder } from '../result/results.ts';
import type { AttemptEvents } from '../result/types.ts';
import type { ClaimedTask } from '../scheduler/claim-tasks.ts';
import { Execution, refusedReport } from './execution.ts';
import type { InlineHandler } from './handlers.ts';
import type { ServedPool } from './inline-pools.sql.ts';

export interface InlinePoolOptions {
  handlers: ReadonlyMap<string, InlineHandler>;
  results: ResultRecorder;
  attemptEvents: Pick<AttemptEvents, 'appendTo'>;
  claim: (served: ServedPool, limit: number) => Promise<ClaimedTask[]>;
  /** of names the attempt that it is about. */
  onError: (error: unknown, what: string, of?: object) => void;
  /** Called when a handler begins; null: nobody hears of it. */
  onDispatch: ((execution: Execution) => void) | null;
  /** What the work of an attempt continues, as a W3C traceparent. */
  traceparent: (work: TracedWork) => string;
}

/** What names a task in the log. */
const namesOf = ({ attemptId, correlationId }: ClaimedTask): object => ({
  correlationId,
  attemptId: toPublicId('att', attemptId),
});

/** Tasks of which more may be held than there are slots: this much work ahead, so that a slot never waits for a claim. */
const aheadMs = 5;
const maxAhead = 500;
/** Tasks whose results are being recorded delay no slot; when so many wait, the database cannot keep up. */
const maxRecording = 1000;
const repeatAfterMs = 500;

/**
 * The slots of one pool in this process. It claims no more than the free slots, plus what the slots will have finished
 * before the next claim returns: claiming further ahead would buy throughput and sell priority.
 */
export class InlinePool {
  served: ServedPool;
  readonly #options: InlinePoolOptions;
  readonly #held = new Map<string, Execution>();
  readonly #waiting: Execution[] = [];
  #running = 0;
  #meanMs = aheadMs;
  #claiming = false;
  #pumping = false;
  #mayHaveMore = false;
  #stopped = false;

  constructor(served: ServedPool, options: InlinePoolOptions) {
    this.served = served;
    this.#options = options;
  }

  get agentIds(): readonly string[] {
    return this.served.agentIds;
  }

  get executions(): Iterable<Execution> {
    return this.#held.values();
  }

  /** Whether it holds leases, or a claim is under way that may bring some. */
  get isBusy(): boolean {
    return this.#claiming || this.#held.size > 0;
  }

  execution(attemptId: string): Execution | undefined {
    return this.#held.get(attemptId);
  }

  /** There may be work: claims until there is none or no slot. */
  wake(): void {
    this.#mayHaveMore = true;
    this.#pump();
  }

  /** Claims no more; what no handler has begun is handed back, the rest is told to stop. */
  stop(): void {
    this.#stopped = true;
    for (const execution of this.#waiting.splice(0)) {
      execution.abort('SHUTDOWN');
      void this.#finish(execution, execution.run(null));
    }
    for (const execution of this.#held.values()) execution.abort('SHUTDOWN');
  }

  /** The lease is gone: nobody waits for this attempt. */
  drop(execution: Execution): void {
    execution.abort('LEASE_LOST');
    const index = this.#waiting.indexOf(execution);
    if (index >= 0) {
      this.#waiting.splice(index, 1);
      this.#held.delete(execution.task.attemptId);
    }
  }

  #room(): number {
    const { slots } = this.served;
    const ahead = Math.floor((slots * aheadMs) / Math.max(this.#meanMs, 0.05));
    const unfinished = this.#waiting.length + this.#running;
    if (this.#held.size - unfinished >= maxRecording) return 0;
    return Math.min(maxAhead, slots + (this.#meanMs < aheadMs ? ahead : 0)) - unfinished;
  }

  #pump(): void {
    if (this.#stopped || this.#claiming || !this.#mayHaveMore) return;
    const limit = this.#room();
    // A claim costs a commit: while the slots are busy it is made for a good part of them at once.
    if (limit <= 0 || (this.#waiting.length > 0 && limit < this.served.slots / 2)) return;
    this.#claiming = true;
    this.#mayHaveMore = false;
    this.#options.claim(this.served, limit).then(
      (tasks) => {
        this.#claiming = false;
        if (tasks.length === limit) this.#mayHaveMore = true;
        for (const task of tasks) this.#take(task);
        this.#start();
        this.#pump();
      },
      (error: unknown) => {
        this.#claiming = false;
        this.#options.onError(error, 'claim');
      },
    );
  }

  #take(task: ClaimedTask): void {
    const { attemptEvents, traceparent } = this.#options;
    const execution = new Execution(task, attemptEvents, traceparent);
    this.#held.set(task.attemptId, execution);
    this.#waiting.push(execution);
    if (this.#stopped) this.stop();
  }

  #start(): void {
    while (this.#running < this.served.slots) {
      const execution = this.#waiting.shift();
      if (!execution) return;
      const handler = this.#options.handlers.get(execution.task.handler ?? '');
      // The agent's handler was changed to one that this process lacks after it was claimed: another replica takes it.
      if (handler) this.#options.onDispatch?.(execution);
      else execution.abort('SHUTDOWN');
      this.#running++;
      const started = performance.now();
      const report = execution.run(handler ?? null).finally(() => {
        this.#running--;
        this.#meanMs += (performance.now() - started - this.#meanMs) / 64;
        this.#start();
        // Long tasks: a free slot is worth a claim of its own. Short ones wait for the group of their results.
        if (this.#meanMs >= aheadMs) this.#pumpSoon();
      });
      void this.#finish(execution, report);
    }
  }

  async #finish(execution: Execution, running: ReturnType<Execution['run']>): Promise<void> {
    const { attemptId } = execution.task;
    try {
      const report = await running;
      if (report) await this.#record(execution, report);
    } catch (error) {
      // The lease stays until the sweeper takes it, so the task is not lost.
      this.#options.onError(error, 'report', namesOf(execution.task));
    } finally {
      this.#held.delete(attemptId);
      this.#pumpSoon();
    }
  }

  /** Repeats while the database is away: a result is known by its digest, so it counts once. */
  async #record(execution: Execution, report: Report): Promise<void> {
    for (;;) {
      try {
        const { attemptId } = execution.task;
        const recorded = await this.#options.results.record({ attemptId, report });
        // Nobody else would end the attempt: that its result is impossible is its result.
        if (recorded.answer === 'REFUSED')
          await this.#record(execution, refusedReport(attemptId, recorded.problem.message));
        return;
      } catch (error) {
        if (this.#stopped || execution.aborted === 'LEASE_LOST' || !isUnavailable(error)) throw error;
        this.#options.onError(error, 'report', namesOf(execution.task));
        await delay(repeatAfterMs);
      }
    }
  }

  /** Results are recorded in groups: when the first of a group gives its place free, the others are about to. */
  #pumpSoon(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    setImmediate(() => {
      this.#pumping = false;
      this.#pump();
    });
  }
}
