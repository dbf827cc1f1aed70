/** The text of one event, as it stands in its source. */
export interface Piece {
  kind: 'text';
  /** Where people find it: the line that it is in or begins in, from 1. */
  line: number;
  /** Which one it is, so that equal ones are told apart: its line, or its number in a list. */
  place: number;
  text: string;
  /** How far in its source it ends, in bytes, or in characters where these are read. */
  end: number;
}

/** What cannot be an event. */
export interface Flaw {
  kind: 'flaw';
  line: number;
  message: string;
  end: number;
}

/** Bytes as they are read. */
export type Chunks = AsyncIterable<Uint8Array>;

export const tooLong = (line: number, end: number, maxBytes: number): Flaw => ({
  kind: 'flaw',
  line,
  end,
  message: `is longer than ${maxBytes} bytes, more than a request may carry.`,
});

export const notUtf8 = (line: number, end: number): Flaw => ({
  kind: 'flaw',
  line,
  end,
  message: 'is not UTF-8.',
});
