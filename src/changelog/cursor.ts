/** A position in the change log: everything up to it was delivered. */
export interface Position {
  /** Transactions before this one are over and delivered… */
  xid: bigint;
  /** …and of this one the entries up to this number. */
  id: number;
  /** But for these transactions before it, which were open when what they write could not be seen. Ascending. */
  open?: readonly bigint[];
}

/** What a log has after a position. */
export interface LogPage<Entry> {
  entries: Entry[];
  /** Of the last entry in order; null when the page is empty. */
  last: Position | null;
  full: boolean;
  /** Entries up to here are deleted. */
  deletedTo: Position;
}

/** Everything before it is delivered, without exceptions. */
export const deliveredTo = (position: Position): Position =>
  position.open?.[0] === undefined ? position : { xid: position.open[0], id: 0 };

/** Before the first entry. */
export const logStart: Position = { xid: 0n, id: 0 };
export const isBefore = (a: Position, b: Position): boolean =>
  a.xid < b.xid || (a.xid === b.xid && a.id < b.id);
export const later = (a: Position, b: Position): Position => (isBefore(b, a) ? a : b);

/** Why a stream cannot resume from a cursor. */
export class CursorError extends Error {
  readonly code: 'INVALID_CURSOR' | 'CURSOR_EXPIRED';
  /** A cursor to restart from, when the old one is of another database or older than what is kept. */
  readonly restartFrom: string | null;

  constructor(code: 'INVALID_CURSOR' | 'CURSOR_EXPIRED', message: string, restartFrom: string | null = null) {
    super(message);
    this.code = code;
    this.restartFrom = restartFrom;
  }
}

const version = 'c1';
/** More exceptions than that make a cursor too long; more transactions are hardly ever open at once. */
export const maxOpen = 256;

/** Cursors are bound to the installation's epoch: after a restore the same numbers mean other changes. */
export function encodeCursor(epoch: string, position: Position): string {
  const { xid, id, open = [] } = position;
  const but = open.length === 0 ? '' : `.${open.map((other) => xid - other).join('-')}`;
  return Buffer.from(`${version}.${epoch.slice(0, 8)}.${xid}.${id}${but}`).toString('base64url');
}

/** The position of a cursor; null when it is of another database. Throws for what is no cursor. */
export function decodeCursor(epoch: string, cursor: string): Position | null {
  const match = /^c1\.([0-9a-f]{8})\.(\d{1,20})\.(\d{1,16})(?:\.(\d{1,20}(?:-\d{1,20})*))?$/.exec(
    Buffer.from(cursor, 'base64url').toString(),
  );
  const xid = BigInt(match?.[2] ?? 0);
  const open = match?.[4]?.split('-').map((distance) => xid - BigInt(distance)) ?? [];
  const ascends = open.every((other, i) => other > (open[i - 1] ?? -1n) && other < xid);
  if (!match || !ascends || open.length > maxOpen) {
    throw new CursorError(
      'INVALID_CURSOR',
      'The cursor is not one of the change log; use one that a message, a launch or changeLogCursor gave.',
    );
  }
  if (match[1] !== epoch.slice(0, 8)) return null;
  return { xid, id: Number(match[3]), ...(open.length > 0 && { open }) };
}
