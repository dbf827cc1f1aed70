import { dataOf, Refused, TryLater } from './answers.ts';
import { EventParser } from './event-parser.ts';
import { RecentIds } from './recent-ids.ts';
import type { Server } from './server.ts';
import type { Subject } from './subjects.ts';
import { backoffMs, Deadline, pause, type Timing } from './timing.ts';
import { type Batch, WatchError, type WatchOptions, type WatchState } from './types.ts';

/** How a stream ended that was not stopped. */
interface StreamEnd {
  /** Null: the server completed it. */
  cause: TryLater | null;
  /** Whether it told anything. */
  delivered: boolean;
  /** Whether it is open as far as anybody knows, but nothing comes. */
  silent: boolean;
  /** What the server asked to wait before a reconnect. */
  retryMs: number | null;
}

/**
 * What is remembered to know what comes again. A stream repeats what was told beside a transaction that is still open;
 * that is more only while one stays open long.
 */
const rememberedIds = 10_000;

/** One watch: a stream, anew from the cursor whenever it breaks, and pages while it does not get through. */
export class Watch<Change extends { id: string }, Filter> {
  readonly #server: Server;
  readonly #subject: Subject<Filter>;
  readonly #options: WatchOptions<Filter>;
  readonly #timing: Timing;
  readonly #stop: AbortSignal;
  readonly #runs: readonly string[] | null;
  readonly #told = new RecentIds(rememberedIds);
  #cursor: string | null;
  #state: WatchState | null = null;

  constructor(
    server: Server,
    subject: Subject<Filter>,
    options: WatchOptions<Filter>,
    timing: Timing,
    stop: AbortSignal,
  ) {
    this.#server = server;
    this.#subject = subject;
    this.#options = options;
    this.#timing = timing;
    this.#stop = stop;
    this.#runs = options.filter ? subject.runsOf(options.filter) : null;
    this.#cursor = options.after ?? null;
  }

  async *batches(): AsyncGenerator<Batch<Change>, void> {
    try {
      await this.#begin();
      for (let failures = 0; !this.#stop.aborted; ) {
        const end = yield* this.#stream();
        if (end.cause === null && (yield* this.#isOver())) return;
        failures = end.delivered ? 0 : failures + 1;
        const again = performance.now() + this.#waitAfter(failures, end);
        const asksToWait = end.cause !== null && end.cause.retryAfterMs !== null && !end.cause.onlyStreams;
        if (asksToWait && !end.delivered) this.#tell('stale', end.cause);
        if (asksToWait || (end.delivered && !end.silent)) await pause(again - performance.now(), this.#stop);
        else if (yield* this.#pages(again, end.cause)) return;
      }
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      throw new WatchError(error.message, error.code, error.restartFrom ?? this.#cursor);
    }
  }

  /** Fixes the place to begin at, so that nothing is left out when the first stream breaks before it told anything. */
  async #begin(): Promise<void> {
    for (let failures = 1; this.#cursor === null && !this.#stop.aborted; failures++) {
      try {
        this.#cursor = (await this.#ask<{ changeLogCursor: string }>('ClientStart', {})).changeLogCursor;
      } catch (error) {
        await this.#failed(failures, error);
      }
    }
  }

  async *#stream(): AsyncGenerator<Batch<Change>, StreamEnd> {
    const { answerMs, silentMs } = this.#timing;
    const deadline = new Deadline(this.#stop);
    const parser = new EventParser();
    const decoder = new TextDecoder();
    let delivered = false;
    const endedBy = (cause: TryLater | null): StreamEnd => ({
      cause,
      delivered,
      silent: deadline.passed && delivered,
      retryMs: parser.retryMs,
    });
    try {
      deadline.within(answerMs);
      const read = await this.#server.open(this.#subject.stream, this.#after(), deadline);
      for (;;) {
        deadline.within(delivered ? silentMs : answerMs);
        const { done, value } = await read();
        // What takes the changes may take its time: only while it waits for some is there a silence.
        deadline.rest();
        if (done) return endedBy(new TryLater('The stream was cut.'));
        for (const { event, data } of parser.push(decoder.decode(value, { stream: true }))) {
          if (event === 'complete') return endedBy(null);
          if (event !== 'next') continue;
          const batch = this.#take(dataOf(data) as BatchData<Change>);
          delivered = true;
          this.#tell('live', null);
          yield batch;
        }
      }
    } catch (error) {
      if (!(error instanceof TryLater)) throw error;
      return endedBy(error);
    } finally {
      deadline.end();
    }
  }

  /** Pages until the stream is tried again, or a wait where there are none. True: the watch is over. */
  async *#pages(until: number, cause: TryLater | null): AsyncGenerator<Batch<Change>, boolean> {
    const { pollMs, gapMs } = this.#timing;
    if (this.#subject.page === null) {
      this.#tell('stale', cause);
      await pause(until - performance.now(), this.#stop);
      return false;
    }
    for (let failures = 0; !this.#stop.aborted; ) {
      try {
        if (yield* this.#endOfRuns()) return true;
        const batch = await this.#page(Math.max(0, Math.min(pollMs, until - performance.now())));
        this.#tell('polling', cause);
        yield batch;
        // Where pages come again, streams may.
        if (failures > 0) return false;
        if (batch.caughtUp && batch.changes.length > 0) await pause(gapMs, this.#stop);
      } catch (error) {
        await this.#failed(++failures, error);
      }
      if (performance.now() >= until) return false;
    }
    return false;
  }

  /** After a stream that the server completed: because its runs ended, or because it stops. */
  async *#isOver(): AsyncGenerator<Batch<Change>, boolean> {
    if (this.#subject.page === null) return true;
    try {
      return yield* this.#endOfRuns();
    } catch (error) {
      // It stops: the next stream tells.
      if (error instanceof TryLater) return false;
      throw error;
    }
  }

  /** Whether all runs that the filter names are over. Then it tells what is left. */
  async *#endOfRuns(): AsyncGenerator<Batch<Change>, boolean> {
    if (this.#runs === null) return false;
    const { runs } = await this.#ask<{ runs: { nodes: unknown[] } }>('ClientUnfinishedRuns', {
      ids: this.#runs,
    });
    if (runs.nodes.length > 0) return false;
    for (;;) {
      const batch = await this.#page(0);
      yield batch;
      if (batch.caughtUp) return true;
    }
  }

  async #page(waitMs: number): Promise<Batch<Change>> {
    const variables = { ...this.#after(), waitSeconds: waitMs / 1000 };
    return this.#take(await this.#ask<BatchData<Change>>(this.#subject.page ?? '', variables, waitMs));
  }

  #after(): Record<string, unknown> {
    return { [this.#subject.argument]: this.#options.filter ?? null, after: this.#cursor };
  }

  #take({ batch: { cursor, caughtUp, changes } }: BatchData<Change>): Batch<Change> {
    this.#cursor = cursor;
    return { cursor, caughtUp, changes: changes.filter(({ id }) => this.#told.add(id)) };
  }

  async #ask<Data>(operationName: string, variables: object, waitMs = 0): Promise<Data> {
    const deadline = new Deadline(this.#stop);
    deadline.within(waitMs + this.#timing.answerMs);
    try {
      return await this.#server.ask<Data>(operationName, variables, deadline);
    } finally {
      deadline.end();
    }
  }

  /** After so many failures in a row nothing comes at all. Throws what another try would only repeat. */
  async #failed(failures: number, error: unknown): Promise<void> {
    if (!(error instanceof TryLater)) throw error;
    if (this.#stop.aborted) return;
    this.#tell('stale', error);
    const { retryMs, pollMs } = this.#timing;
    await pause(Math.max(backoffMs(failures, retryMs, pollMs), error.retryAfterMs ?? 0), this.#stop);
  }

  #waitAfter(failures: number, { cause, retryMs }: StreamEnd): number {
    const { maxRetryMs, retryMs: usual } = this.#timing;
    return (cause?.retryAfterMs ?? 0) + backoffMs(failures, retryMs ?? usual, maxRetryMs);
  }

  #tell(state: WatchState, cause: Error | null): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#options.onState?.(state, cause);
  }
}

interface BatchData<Change> {
  batch: Batch<Change>;
}
