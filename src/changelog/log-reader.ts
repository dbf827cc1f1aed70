import type { Database } from '../db/pool.ts';
import { logStart, type Position } from './cursor.ts';
import type { Interest } from './interest.ts';
import { InterestGroups } from './interest-groups.ts';
import { endOf, horizonOf, readSnapshot } from './snapshot.ts';

export interface LiveSubscriber<Entry> {
  /** What may concern it of what became visible since it joined or was called last; the same list for all of one interest. */
  push(entries: readonly Entry[]): void;
}

/** What committed since a snapshot, or the first of it where that is too much for one reading. */
export interface Reading<Entry> {
  /** Up to which it goes. */
  snapshot: string;
  /** Transactions from here on had not begun, whatever is still to be read. */
  end: bigint;
  entries: Entry[];
}

/** Where a subscriber joined. */
export interface Joined {
  /** What it sees is history. */
  snapshot: string;
  /** Transactions from here on had not begun. */
  end: bigint;
}

interface Joiner<Entry, Scope> {
  subscriber: LiveSubscriber<Entry>;
  interest: Interest<Scope>;
  /** A reading that began after this call lets it join. */
  call: number;
  resolve: (joined: Joined) => void;
  reject: (error: unknown) => void;
}

export interface LogReaderOptions<Entry, Scope> {
  db: Database;
  /** What committed since a snapshot, of what the scopes ask for. */
  readSince: (snapshot: string, scopes: Iterable<Scope>) => Promise<Reading<Entry>>;
  /** By these it is found who is concerned with an entry. */
  keysOf: (entry: Entry) => readonly string[];
  /** Calls back after commits; answers how to stop that. */
  onSignal: (listener: () => void) => () => void;
  onError: (error: unknown) => void;
}

/**
 * What happens in this time is read and told together: longer while much happens, when each reading and each message
 * would bring little and cost what is missing elsewhere.
 */
const readEveryMs = { seldom: 20, often: 100 };
/** From so many entries in one reading on, much happens. */
const muchHappens = 100;
/** Entries that are told together at most. */
const partSize = 200;

/** The one reader of a log in a process: feeds all subscribers from one statement, and reads only for them. */
export class LogReader<Entry, Scope> {
  readonly #options: LogReaderOptions<Entry, Scope>;
  readonly #subscribers = new Map<LiveSubscriber<Entry>, Interest<Scope>>();
  readonly #groups: InterestGroups<Entry, LiveSubscriber<Entry>, Scope>;
  #snapshot = '';
  #position: Position = logStart;
  #reading: Promise<void> | null = null;
  /** When the log was read last, and how long the next reading waits after that. */
  #readAt = Number.NEGATIVE_INFINITY;
  #waitMs = readEveryMs.seldom;
  #timer: NodeJS.Timeout | null = null;
  /** Of read, and up to which one they are answered. */
  #calls = 0;
  #answered = 0;
  #stopped = false;
  readonly #joiners = new Set<Joiner<Entry, Scope>>();
  /** Something was committed while the log was read. */
  #signalled = false;
  readonly #unsubscribe: () => void;

  constructor(options: LogReaderOptions<Entry, Scope>) {
    this.#options = options;
    this.#groups = new InterestGroups(options.keysOf);
    this.#unsubscribe = options.onSignal(() => this.#readSoon());
  }

  stop(): void {
    this.#stopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    this.#unsubscribe();
    for (const subscriber of this.#subscribers.keys()) this.leave(subscriber);
    for (const { resolve } of this.#joiners) resolve(this.#lastJoined);
    this.#joiners.clear();
  }

  /** What is answered to whoever cannot join any more. */
  get #lastJoined(): Joined {
    return { snapshot: this.#snapshot, end: endOf(this.#snapshot) };
  }

  get subscribers(): number {
    return this.#subscribers.size;
  }

  /** Transactions before it are over, and what they wrote was pushed. */
  get position(): Position {
    return this.#position;
  }

  /**
   * Joins a subscriber and answers where: what that snapshot sees is history, everything else that it is interested in
   * will be pushed. Nothing is, once the reader is stopped.
   */
  join(subscriber: LiveSubscriber<Entry>, interest: Interest<Scope>): Promise<Joined> {
    if (this.#stopped) return Promise.resolve(this.#lastJoined);
    const joined = new Promise<Joined>((resolve, reject) => {
      this.#joiners.add({ subscriber, interest, call: this.#calls + 1, resolve, reject });
    });
    // Of what fails those hear who wait for it.
    this.read().catch(() => {});
    return joined;
  }

  leave(subscriber: LiveSubscriber<Entry>): void {
    const interest = this.#subscribers.get(subscriber);
    if (!interest) return;
    this.#subscribers.delete(subscriber);
    this.#groups.delete(subscriber, interest);
  }

  /**
   * Reads what is new; when it settles, everything committed before the call was pushed. When it fails, the next signal
   * or poll reads again from the same snapshot: nothing is skipped.
   */
  async read(): Promise<void> {
    const call = ++this.#calls;
    // One that began before the call may have seen less.
    while (this.#answered < call && !this.#stopped) {
      this.#reading ??= this.#readOnce();
      await this.#reading;
    }
  }

  #readSoon(): void {
    if (this.#timer || this.#subscribers.size === 0) return;
    if (this.#reading) {
      this.#signalled = true;
      return;
    }
    const read = (): void => {
      this.#timer = null;
      this.read().catch(this.#options.onError);
    };
    const wait = this.#readAt + this.#waitMs - performance.now();
    if (wait > 0) this.#timer = setTimeout(read, wait);
    else read();
  }

  async #readOnce(): Promise<void> {
    const call = this.#calls;
    this.#readAt = performance.now();
    this.#signalled = false;
    const { db, readSince } = this.#options;
    try {
      const { snapshot, end, entries } =
        this.#subscribers.size === 0
          ? await readNothing(db)
          : await readSince(this.#snapshot, this.#groups.scopes());
      this.#snapshot = snapshot;
      await this.#push(entries, { xid: horizonOf(snapshot), id: 0 });
      if (endOf(snapshot) === end) {
        this.#answered = call;
        this.#waitMs = entries.length < muchHappens ? readEveryMs.seldom : readEveryMs.often;
      } else {
        // The rest follows at once.
        this.#signalled = true;
        this.#waitMs = 0;
      }
      this.#admit(call, { snapshot, end });
    } catch (error) {
      for (const { reject } of this.#joiners) reject(error);
      this.#joiners.clear();
      throw error;
    } finally {
      this.#reading = null;
      if (this.#signalled) this.#readSoon();
    }
  }

  /**
   * Lets those join who waited for this reading. Only here, between two of them: one that is under way asks for what those
   * are interested in who were there when it began.
   */
  #admit(upTo: number, joined: Joined): void {
    for (const joiner of this.#joiners) {
      const { subscriber, interest, call, resolve } = joiner;
      if (call > upTo) continue;
      this.#joiners.delete(joiner);
      this.leave(subscriber);
      this.#subscribers.set(subscriber, interest);
      this.#groups.add(subscriber, interest);
      resolve(joined);
    }
  }

  /**
   * Tells what was read, in parts that fit into a subscriber's buffer: between them those who keep up write. Nobody joins
   * meanwhile, since who would waits for the end of the reading.
   */
  async #push(entries: readonly Entry[], position: Position): Promise<void> {
    const before = this.#position;
    let lists = [...this.#groups.concerned(entries)];
    for (let first = 0; ; first += partSize) {
      const rest = lists.filter(([own]) => own.length > first + partSize);
      for (const list of lists) {
        const [own, members] = list;
        // The cursor of a message must not pass what is still to be told.
        this.#position = rest.includes(list) ? before : position;
        const part = own.length <= partSize ? own : own.slice(first, first + partSize);
        for (const subscriber of members) subscriber.push(part);
      }
      if (rest.length === 0) break;
      this.#position = before;
      lists = rest;
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#position = position;
  }
}

/** There is nobody to read for. */
async function readNothing(db: Database): Promise<Reading<never>> {
  const snapshot = await readSnapshot(db);
  return { snapshot, end: endOf(snapshot), entries: [] };
}
