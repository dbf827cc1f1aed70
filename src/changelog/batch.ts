import { limits } from '../domain/limits.ts';
import type { Position } from './cursor.ts';
import type { Changes } from './types.ts';

/** What one read of the log found for all who ask for the same: selected and measured once, and told as one message. */
export class Batch<Change> {
  readonly changes: readonly Change[];
  /** About, of what is kept. */
  readonly bytes: number;
  #message: Changes<Change> | null = null;
  #position: Position | null = null;

  constructor(changes: readonly Change[], bytesOf: (change: Change) => number) {
    this.changes = changes;
    this.bytes = changes.reduce((sum, change) => sum + bytesOf(change), 0);
  }

  /** The message of exactly this batch: the same object for all whose position is the same after it. */
  message(position: Position, cursorOf: (position: Position) => string): Changes<Change> {
    if (this.#message === null || this.#position !== position) {
      this.#position = position;
      this.#message = { cursor: cursorOf(position), caughtUp: true, changes: [...this.changes] };
    }
    return this.#message;
  }
}

/** Batches by the list of entries that they were made from, which all who ask for the same are given. */
const batches = new WeakMap<readonly unknown[], Batch<unknown>>();

export function batchOf<Entry, Change extends Entry>(
  entries: readonly Entry[],
  select: (entry: Entry) => entry is Change,
  bytesOf: (change: Change) => number,
): Batch<Change> {
  const known = batches.get(entries) as Batch<Change> | undefined;
  if (known) return known;
  const batch = new Batch(entries.filter(select), bytesOf);
  batches.set(entries, batch);
  return batch;
}

/** Whether these are more than may be kept for a subscriber. */
export function isTooMuch(kept: readonly Batch<unknown>[]): boolean {
  const events = kept.reduce((sum, { changes }) => sum + changes.length, 0);
  const bytes = kept.reduce((sum, batch) => sum + batch.bytes, 0);
  return events > limits.streamBufferEvents || bytes > limits.streamBufferBytes;
}
