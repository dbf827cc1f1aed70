import { limits } from '../domain/limits.ts';
import { type Batch, batchOf, isTooMuch } from './batch.ts';
import {
  CursorError,
  decodeCursor,
  deliveredTo,
  encodeCursor,
  isBefore,
  type LogPage,
  later,
  logStart,
  type Position,
} from './cursor.ts';
import type { Interest } from './interest.ts';
import type { LiveSubscriber, LogReader } from './log-reader.ts';
import { SlowConsumerError } from './slow-consumer.ts';
import { horizonOf } from './snapshot.ts';
import type { StreamEnd } from './stream-end.ts';
import type { Changes, MessageStream } from './types.ts';

export interface SubscriptionOptions<Entry, Change extends Entry, Scope> {
  reader: LogReader<Entry, Scope>;
  interest: Interest<Scope>;
  readPage: (after: Position, snapshot: string) => Promise<LogPage<Entry>>;
  epoch: string;
  after: string | null;
  /** Whether the subscriber asks for it. */
  select: (entry: Entry) => entry is Change;
  /** About what it takes to keep a change. */
  bytesOf: (change: Change) => number;
  /** When the stream completes; null: never. */
  end: StreamEnd<Entry> | null;
}

const keepAliveMs = 15_000;
const maxBehindMs = limits.streamUnreadSeconds * 1000;

/**
 * One subscriber's way through the change log: the backlog after its cursor page by page, then what happens. Live
 * changes wait in a bounded buffer; when it overflows the subscriber goes back to reading the log from its cursor, so
 * memory is bounded and nothing is lost. Written as an iterator by hand, because an async generator that waits for a
 * change could not be stopped when its client leaves.
 */
export class Subscription<Entry, Change extends Entry, Scope>
  implements MessageStream<Changes<Change>>, LiveSubscriber<Entry>
{
  readonly #options: SubscriptionOptions<Entry, Change, Scope>;
  readonly #isForeign: boolean;
  #position: Position;
  #mode: 'START' | 'BACKLOG' | 'LIVE' = 'START';
  #joinedAt = '';
  #logEnd = 0n;
  #buffer: Batch<Change>[] = [];
  #overflowed = false;
  #behindSince: number | null = null;
  #endBegun = false;
  #greeted = false;
  #lastMessage = performance.now();
  #wake: (() => void) | null = null;
  #take: ((message: Changes<Change>) => boolean) | null = null;
  #closed = false;

  constructor(options: SubscriptionOptions<Entry, Change, Scope>) {
    this.#options = options;
    const position = options.after === null ? logStart : decodeCursor(options.epoch, options.after);
    this.#isForeign = position === null;
    this.#position = position ?? logStart;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  offerTo(take: (message: Changes<Change>) => boolean): void {
    this.#take = take;
  }

  push(entries: readonly Entry[]): void {
    const { end, select, bytesOf, reader } = this.#options;
    if (end) for (const entry of entries) end.follow(entry);
    const batch = batchOf(entries, select, bytesOf);
    if (batch.changes.length > 0 && !this.#overflowed && !this.#handsOver(batch)) {
      this.#buffer.push(batch);
      if (isTooMuch(this.#buffer)) {
        this.#overflowed = true;
        this.#behindSince ??= performance.now();
        this.#buffer = [];
        reader.leave(this);
      }
      this.#wake?.();
    }
    if (end?.reached) this.#wake?.();
  }

  /** Whoever waits for a message has all that was before: nothing is buffered then, and it may be told at once. */
  #handsOver(batch: Batch<Change>): boolean {
    if (this.#take === null || this.#wake === null || isTooMuch([batch])) return false;
    if (!this.#take(this.#live(batch))) return false;
    this.#lastMessage = performance.now();
    return true;
  }

  async next(): Promise<IteratorResult<Changes<Change>>> {
    if (this.#mode === 'START' && !this.#closed) await this.#start();
    for (;;) {
      if (this.#closed) return { done: true, value: undefined };
      if (this.#overflowed) await this.#fallBack();
      const message = this.#mode === 'BACKLOG' ? await this.#readBacklog() : this.#takeLive();
      if (this.#closed) return { done: true, value: undefined };
      if (message) {
        this.#greeted = true;
        this.#lastMessage = performance.now();
        return { done: false, value: message };
      }
      if (this.#mode === 'BACKLOG') continue;
      if (!this.#options.end?.reached) await this.#waitForChange();
      else if (!(await this.#hasMore())) return this.return();
    }
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    this.#closed = true;
    this.#options.reader.leave(this);
    this.#options.end?.leave();
    this.#buffer = [];
    this.#wake?.();
    return Promise.resolve({ done: true, value: undefined });
  }

  async #start(): Promise<void> {
    const { after } = this.#options;
    await this.#join();
    if (after === null) {
      this.#position = { xid: horizonOf(this.#joinedAt), id: 0 };
      this.#mode = 'LIVE';
      await this.#beginEnd();
      return;
    }
    if (this.#isForeign) await this.#expire('of another database (or of before a restore)');
    if (this.#position.xid > this.#logEnd) await this.#expire('ahead of this database');
    this.#mode = 'BACKLOG';
  }

  /** Ends the stream: what came after its cursor cannot be told any more. */
  async #expire(why: string): Promise<never> {
    await this.return();
    throw new CursorError(
      'CURSOR_EXPIRED',
      `The cursor is ${why}; query the present state and subscribe anew.`,
      this.#cursor({ xid: horizonOf(this.#joinedAt), id: 0 }),
    );
  }

  /** From here on live changes are buffered; what was before is read from the log. */
  async #join(): Promise<void> {
    this.#overflowed = false;
    const { reader, interest } = this.#options;
    const { snapshot, end } = await reader.join(this, interest);
    this.#joinedAt = snapshot;
    this.#logEnd = end;
    if (this.#closed) reader.leave(this);
  }

  async #fallBack(): Promise<void> {
    if (this.#behindSince !== null && performance.now() - this.#behindSince > maxBehindMs) {
      await this.return();
      throw new SlowConsumerError();
    }
    // What ended meanwhile is in the backlog, which does not tell of it: it is asked for again.
    this.#endBegun = false;
    await this.#join();
    this.#mode = 'BACKLOG';
  }

  async #readBacklog(): Promise<Changes<Change> | null> {
    const page = await this.#options.readPage(this.#position, this.#joinedAt);
    if (isBefore(deliveredTo(this.#position), page.deletedTo)) await this.#expire('older than what is kept');
    const horizon = horizonOf(this.#joinedAt);
    const through = !page.full || page.last === null;
    if (page.full && page.last) this.#position = page.last;
    else {
      this.#position = { xid: horizon, id: 0 };
      this.#mode = 'LIVE';
      if (!this.#overflowed) this.#behindSince = null;
      await this.#beginEnd();
    }
    const changes = page.entries.filter(this.#options.select);
    const due = through || !this.#greeted || this.#silentMs >= keepAliveMs;
    // A cursor past the horizon would claim that transactions which are still open were delivered.
    const cursor = this.#position.xid >= horizon ? { xid: horizon, id: 0 } : this.#position;
    return changes.length > 0 || due ? { cursor: this.#cursor(cursor), caughtUp: through, changes } : null;
  }

  #takeLive(): Changes<Change> | null {
    const [first, ...more] = this.#buffer;
    if (!first && this.#greeted && this.#silentMs < keepAliveMs) return null;
    this.#buffer = [];
    this.#behindSince = null;
    if (first && more.length === 0) return this.#live(first);
    const changes = [first, ...more].flatMap((batch) => batch?.changes ?? []);
    return { cursor: this.#cursor(this.#advance()), caughtUp: true, changes };
  }

  /** The message of what the reader pushed last, as far as it is. */
  #live(batch: Batch<Change>): Changes<Change> {
    return batch.message(this.#advance(), this.#cursor);
  }

  #advance(): Position {
    this.#position = later(this.#position, this.#options.reader.position);
    return this.#position;
  }

  get #silentMs(): number {
    return performance.now() - this.#lastMessage;
  }

  #waitForChange(): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        // What comes before the one who waited goes on has to follow what woke it.
        this.#wake = null;
        resolve();
      };
      const timer = setTimeout(wake, Math.max(1, keepAliveMs - this.#silentMs));
      this.#wake = wake;
    });
  }

  async #beginEnd(): Promise<void> {
    const { end } = this.#options;
    if (end === null || this.#endBegun) return;
    this.#endBegun = true;
    try {
      await end.begin(() => this.#wake?.());
    } finally {
      if (this.#closed) end.leave();
    }
  }

  /** Whether something was written before the end that is not sent yet. */
  async #hasMore(): Promise<boolean> {
    await this.#options.reader.read();
    return this.#buffer.length > 0 || this.#overflowed;
  }

  readonly #cursor = (position: Position): string => encodeCursor(this.#options.epoch, position);
}
