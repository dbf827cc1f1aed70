import type { Database } from '../db/pool.ts';
import { horizonOf, type LoggedChange, readSince, readSnapshot } from './read-changes.sql.ts';
import type { Signal } from './signal.ts';

export interface LiveSubscriber {
  /** What became visible since the subscriber joined or was called last. Transactions before the horizon are over. */
  push(changes: readonly LoggedChange[], horizon: bigint): void;
}

/** The one reader of the change log in a process: feeds all subscribers from one statement, and reads only for them. */
export class LogReader {
  readonly #db: Database;
  readonly #subscribers = new Set<LiveSubscriber>();
  readonly #onError: (error: unknown) => void;
  #snapshot = '';
  #reading: Promise<void> | null = null;
  #again = false;
  readonly #unsubscribe: () => void;

  constructor(db: Database, signal: Signal, onError: (error: unknown) => void) {
    this.#db = db;
    this.#onError = onError;
    this.#unsubscribe = signal.onChange(() => {
      if (this.#subscribers.size > 0) this.read().catch(this.#onError);
    });
  }

  stop(): void {
    this.#unsubscribe();
    this.#subscribers.clear();
  }

  /**
   * Joins a subscriber and answers the snapshot that it joined at: what that one sees is history, everything else will
   * be pushed.
   */
  async join(subscriber: LiveSubscriber): Promise<string> {
    await this.read();
    // No await from here on: between the snapshot and the joining nothing is pushed.
    this.#subscribers.add(subscriber);
    return this.#snapshot;
  }

  leave(subscriber: LiveSubscriber): void {
    this.#subscribers.delete(subscriber);
  }

  /**
   * Reads what is new; when it settles, everything committed before the call was pushed. When it fails, the next signal
   * or poll reads again from the same snapshot: nothing is skipped.
   */
  async read(): Promise<void> {
    this.#again = true;
    while (this.#again) {
      this.#reading ??= this.#readOnce();
      await this.#reading;
    }
  }

  async #readOnce(): Promise<void> {
    this.#again = false;
    try {
      if (this.#subscribers.size === 0) {
        const snapshot = await readSnapshot(this.#db);
        // Somebody who joined meanwhile was told the old snapshot and needs what came after it.
        if (this.#subscribers.size === 0) this.#snapshot = snapshot;
        else this.#again = true;
        return;
      }
      const { snapshot, changes } = await readSince(this.#db, this.#snapshot);
      this.#snapshot = snapshot;
      const horizon = horizonOf(snapshot);
      for (const subscriber of this.#subscribers) subscriber.push(changes, horizon);
    } finally {
      this.#reading = null;
    }
  }
}
