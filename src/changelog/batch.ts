import type { Changes } from './types.ts';

/** What one read of the log found for all who ask for the same: selected and measured once, and told as one message. */
export class Batch<Change> {
  readonly changes: readonly Change[];
  readonly bytes: number;
  #message: Changes<Change> | null = null;

  constructor(changes: readonly Change[]) {
    this.changes = changes;
    this.bytes = changes.reduce((sum, change) => sum + JSON.stringify(change).length, 0);
  }

  /** The message of exactly this batch: the same object for all whose cursor is the same after it. */
  message(cursor: string): Changes<Change> {
    if (this.#message?.cursor !== cursor)
      this.#message = { cursor, caughtUp: true, changes: [...this.changes] };
    return this.#message;
  }
}

/** Batches by the list of entries that they were made from, which all who ask for the same are given. */
const batches = new WeakMap<readonly unknown[], Batch<unknown>>();

export function batchOf<Entry, Change>(
  entries: readonly Entry[],
  select: (entry: Entry) => Change | null,
): Batch<Change> {
  const known = batches.get(entries) as Batch<Change> | undefined;
  if (known) return known;
  const batch = new Batch(entries.flatMap((entry) => select(entry) ?? []));
  batches.set(entries, batch);
  return batch;
}
