/** A position in the change log: everything up to it was delivered. */
export interface Position {
  /** Transactions before this one are over and delivered… */
  xid: bigint;
  /** …and of this one the entries up to this number. */
  id: number;
}

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

/** Cursors are bound to the installation's epoch: after a restore the same numbers mean other changes. */
export const encodeCursor = (epoch: string, position: Position): string =>
  Buffer.from(`${version}.${epoch.slice(0, 8)}.${position.xid}.${position.id}`).toString('base64url');

/** The position of a cursor; null when it is of another database. Throws for what is no cursor. */
export function decodeCursor(epoch: string, cursor: string): Position | null {
  const match = /^c1\.([0-9a-f]{8})\.(\d{1,20})\.(\d{1,16})$/.exec(
    Buffer.from(cursor, 'base64url').toString(),
  );
  if (!match) {
    throw new CursorError(
      'INVALID_CURSOR',
      'The cursor is not one of the change log; use one that a message, a launch or changeLogCursor gave.',
    );
  }
  if (match[1] !== epoch.slice(0, 8)) return null;
  return { xid: BigInt(match[2] ?? ''), id: Number(match[3]) };
}
