/** Enough to begin with, while it is not known how long one takes. */
const first = 10;

/**
 * How many messages to have at once, so that they are stored within half the ack wait: more as long as there is time,
 * at once fewer when there is not.
 */
export class BatchSize {
  readonly #halfAckWaitMs: number;
  readonly #max: number;
  #size: number;

  constructor(ackWaitSeconds: number, max: number) {
    this.#halfAckWaitMs = (ackWaitSeconds * 1000) / 2;
    this.#max = max;
    this.#size = Math.min(first, max);
  }

  get size(): number {
    return this.#size;
  }

  /** So many messages took so long. */
  took(messages: number, ms: number): void {
    const inTime = Math.floor((messages * this.#halfAckWaitMs) / Math.max(ms, 1));
    this.#size = Math.max(1, Math.min(this.#max, this.#size * 2, inTime));
  }
}
