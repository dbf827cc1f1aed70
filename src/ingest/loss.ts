import { type Range, within } from './ranges.ts';

/** What a stream and its consumer say, and what this installation knows. */
export interface StreamState {
  /** Not handled, through the last message of the stream. */
  holes: readonly Range[];
  /** The first message that the stream still has. Read before delivered. */
  firstSequence: number;
  /** The last message that was ever delivered. */
  delivered: number;
  /** The last one that was delivered a whole ack wait ago: it is stored by now, if it was in work. 0: unknown. */
  worked: number;
  /** The last one that was delivered so long ago that each was delivered as often as it may be. 0: unknown. */
  exhausted: number;
}

export interface Loss {
  /** Removed from the stream before they were handled. */
  lost: Range[];
  /** Still there, but the consumer does not deliver them any more; or they were removed one by one. */
  abandoned: Range[];
}

/**
 * What will not come by itself. A message that the stream no longer has is lost at once when it was never delivered; one
 * that was delivered may be in work at this moment, and is given up only when its time is over.
 */
export function findLoss({ holes, firstSequence, delivered, worked, exhausted }: StreamState): Loss {
  const gone = firstSequence - 1;
  return {
    lost: [
      ...within(holes, 1, Math.min(gone, worked)),
      ...within(holes, Math.max(delivered, worked) + 1, gone),
    ],
    abandoned: within(holes, firstSequence, exhausted),
  };
}
