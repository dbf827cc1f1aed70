import type { OperationResults } from './operation-results.ts';
import type { StreamedResult } from './shared-results.ts';

type Result = StreamedResult['result'];

/** How many messages of a stream were produced and not yet written: past a number its operations wait. */
export class UnsentMessages {
  readonly #most: number;
  #unsent = 0;
  #closed = false;
  readonly #waiting = new Set<() => void>();

  constructor(most: number) {
    this.#most = most;
  }

  get isFull(): boolean {
    return this.#unsent >= this.#most && !this.#closed;
  }

  /** One was written. */
  taken(): void {
    this.#unsent--;
    if (!this.isFull) this.#wake();
  }

  /** Nobody reads any more, and nobody waits. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  /** The results of an operation, no faster than the stream is read. Tells once when they are through. */
  pace(results: OperationResults, onEnd: () => void): AsyncGenerator<Result, undefined, undefined> {
    let ended = false;
    const end = (): Promise<IteratorReturnResult<undefined>> => {
      if (!ended) {
        ended = true;
        onEnd();
        this.#wake();
      }
      return results.return();
    };
    const paced: AsyncGenerator<Result, undefined, undefined> = {
      [Symbol.asyncIterator]: () => paced,
      next: async () => {
        while (this.isFull && !ended) await this.#room();
        const next = await results.next();
        if (next.done || ended || this.#closed) return end();
        this.#unsent++;
        return { done: false, value: next.value.result };
      },
      return: end,
      throw: end,
    };
    return paced;
  }

  #room(): Promise<void> {
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
