import type { Database } from '../db/pool.ts';
import {
  CursorError,
  decodeCursor,
  deliveredTo,
  encodeCursor,
  isBefore,
  later,
  logStart,
  maxOpen,
  type Position,
} from './cursor.ts';
import type { Interest } from './interest.ts';
import type { LiveSubscriber, LogReader } from './log-reader.ts';
import { type ChangeScope, type LoggedChange, readPage } from './read-changes.sql.ts';
import { endOf, horizonOf, openIn } from './snapshot.ts';
import type { Changes } from './types.ts';

export interface ChangePageOptions<Change> {
  db: Database;
  reader: LogReader<LoggedChange, ChangeScope>;
  epoch: string;
  /** Null: from the oldest change that is kept. */
  after: string | null;
  first: number;
  interest: Interest<ChangeScope>;
  matches: (change: LoggedChange) => change is LoggedChange & Change;
}

/** Entries that are read together, and those that one question looks at: a rare match is searched for over several. */
const readAtOnce = 500;
const lookedAt = 10_000;

/**
 * The next changes after a cursor as one page. The cursor of a page cannot rely on a reader that remembers what it told:
 * it names the transactions that were still open, so that the next page has all that they write, and nothing twice that
 * was already seen beside them. Waits for a first change until the end.
 */
export async function readChangePage<Change>(
  options: ChangePageOptions<Change>,
  end: AbortSignal,
): Promise<Changes<Change>> {
  const { reader, epoch, matches } = options;
  const given = options.after === null ? logStart : decodeCursor(epoch, options.after);
  let position = given ?? logStart;
  for (;;) {
    const arrival = new Arrival(matches);
    const { snapshot, end: logEnd } = await reader.join(arrival, options.interest);
    try {
      if (given === null) throw expired(epoch, snapshot, 'of another database (or of before a restore)');
      if (position.xid > logEnd) throw expired(epoch, snapshot, 'ahead of this database');
      const found = await readFrom(options, position, snapshot);
      position = found.position;
      if (found.changes.length > 0 || !found.through || end.aborted) {
        return { cursor: encodeCursor(epoch, position), caughtUp: found.through, changes: found.changes };
      }
      await arrival.there(end);
    } finally {
      reader.leave(arrival);
    }
  }
}

interface Found<Change> {
  changes: (LoggedChange & Change)[];
  position: Position;
  through: boolean;
}

async function readFrom<Change>(
  { db, epoch, after, first, matches }: ChangePageOptions<Change>,
  start: Position,
  snapshot: string,
): Promise<Found<Change>> {
  // By number: what is pulled in front of a page comes again with its own.
  const found = new Map<number, LoggedChange & Change>();
  let position = start;
  for (let looked = 0; looked < lookedAt && found.size < first; looked += readAtOnce) {
    const page = await readPage(db, position, snapshot, readAtOnce);
    if (after !== null && isBefore(deliveredTo(position), page.deletedTo))
      throw expired(epoch, snapshot, 'older than what is kept');
    const matching = page.entries.filter(matches).filter(({ number }) => !found.has(number));
    const part = firstOf(matching, first - found.size, page.last);
    for (const change of part.changes) found.set(change.number, change);
    if (part.cutAt === null && (!page.full || page.last === null)) {
      const here = positionAt(snapshot, { xid: endOf(snapshot), id: 0 });
      return { changes: [...found.values()], position: later(position, here), through: true };
    }
    position = positionAt(snapshot, part.cutAt ?? page.last ?? position);
  }
  return { changes: [...found.values()], position, through: false };
}

/**
 * The first changes by their place in the log, with those of the same objects that have to come before them; in the
 * order given. cutAt null: all of them. What was pulled in front of the page lies beyond its last place, and so cannot
 * be where it is cut.
 */
function firstOf<Change extends LoggedChange>(
  changes: readonly Change[],
  limit: number,
  last: Position | null,
): { changes: readonly Change[]; cutAt: Position | null } {
  const places = changes
    .map(placeOf)
    .filter((place) => last === null || !isBefore(last, place))
    .sort((a, b) => (isBefore(a, b) ? -1 : 1));
  const cutAt = places[limit - 1];
  if (cutAt === undefined || places.length <= limit) return { changes, cutAt: null };
  const isKept = (change: LoggedChange): boolean => !isBefore(cutAt, placeOf(change));
  const newest = new Map<string, number>();
  for (const change of changes)
    if (isKept(change))
      newest.set(objectOf(change), Math.max(newest.get(objectOf(change)) ?? 0, change.sequence));
  const kept = changes.filter(
    (change) => change.sequence <= (newest.get(objectOf(change)) ?? 0) || isKept(change),
  );
  return { changes: kept, cutAt };
}

const placeOf = ({ xid, number }: LoggedChange): Position => ({ xid: BigInt(xid), id: number });
const objectOf = ({ runId, taskId }: LoggedChange): string => taskId ?? runId;

/** A place up to which a snapshot was read, with the transactions before it that it could not see. */
function positionAt(snapshot: string, place: Position): Position {
  const open = openIn(snapshot).filter((xid) => xid < place.xid);
  const [next] = open.slice(maxOpen);
  return next === undefined ? { ...place, open } : { xid: next, id: 0, open: open.slice(0, maxOpen) };
}

const expired = (epoch: string, snapshot: string, why: string): CursorError =>
  new CursorError(
    'CURSOR_EXPIRED',
    `The cursor is ${why}; query the present state and go on from extensions.cursor.`,
    encodeCursor(epoch, { xid: horizonOf(snapshot), id: 0 }),
  );

/** Waits for a change that matches. */
class Arrival implements LiveSubscriber<LoggedChange> {
  readonly #matches: (change: LoggedChange) => boolean;
  #came = false;
  #wake: (() => void) | null = null;

  constructor(matches: (change: LoggedChange) => boolean) {
    this.#matches = matches;
  }

  push(changes: readonly LoggedChange[]): void {
    if (!this.#came && changes.some(this.#matches)) {
      this.#came = true;
      this.#wake?.();
    }
  }

  async there(end: AbortSignal): Promise<void> {
    if (this.#came || end.aborted) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      end.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}
