import type { Database } from '../db/pool.ts';
import { horizonOf, readSnapshot } from './snapshot.ts';

export interface LiveSubscriber<Entry> {
  /** What became visible since the subscriber joined or was called last. Transactions before the horizon are over. */
  push(entries: readonly Entry[], horizon: bigint): void;
}

export interface LogReaderOptions<Entry, Scope> {
  db: Database;
  /** What committed since a snapshot, of what the scopes ask for, and the snapshot up to which that goes. */
  readSince: (snapshot: string, scopes: Iterable<Scope>) => Promise<{ snapshot: string; entries: Entry[] }>;
  /** Calls back after commits; answers how to stop that. */
  onSignal: (listener: () => void) => () => void;
  onError: (error: unknown) => void;
}

/** The one reader of a log in a process: feeds all subscribers from one statement, and reads only for them. */
export class LogReader<Entry, Scope = null> {
  readonly #options: LogReaderOptions<Entry, Scope>;
  readonly #subscribers = new Map<LiveSubscriber<Entry>, Scope>();
  #snapshot = '';
  #reading: Promise<void> | null = null;
  #again = false;
  /** How often somebody joined. */
  #joined = 0;
  readonly #unsubscribe: () => void;

  constructor(options: LogReaderOptions<Entry, Scope>) {
    this.#options = options;
    this.#unsubscribe = options.onSignal(() => {
      if (this.#subscribers.size > 0) this.read().catch(options.onError);
    });
  }

  stop(): void {
    this.#unsubscribe();
    this.#subscribers.clear();
  }

  /**
   * Joins a subscriber and answers the snapshot that it joined at: what that one sees is history, everything else of its
   * scope will be pushed.
   */
  async join(subscriber: LiveSubscriber<Entry>, scope: Scope): Promise<string> {
    await this.read();
    // No await from here on: between the snapshot and the joining nothing is pushed.
    this.#subscribers.set(subscriber, scope);
    this.#joined++;
    return this.#snapshot;
  }

  leave(subscriber: LiveSubscriber<Entry>): void {
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
    const { db, readSince } = this.#options;
    const joined = this.#joined;
    try {
      const { snapshot, entries } =
        this.#subscribers.size === 0
          ? { snapshot: await readSnapshot(db), entries: [] }
          : await readSince(this.#snapshot, this.#subscribers.values());
      if (joined !== this.#joined) {
        // Somebody who joined meanwhile was told the old snapshot, and nobody asked for what is of its scope.
        this.#again = true;
        return;
      }
      this.#snapshot = snapshot;
      const horizon = horizonOf(snapshot);
      for (const subscriber of this.#subscribers.keys()) subscriber.push(entries, horizon);
    } finally {
      this.#reading = null;
    }
  }
}
