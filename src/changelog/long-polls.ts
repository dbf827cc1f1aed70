/** Questions that wait for something to answer: until their time is over, their client leaves or the process stops. */
export class LongPolls {
  /** Ends of those that are under way. */
  readonly #ends = new Set<AbortController>();
  #draining = false;

  get draining(): boolean {
    return this.#draining;
  }

  get underWay(): number {
    return this.#ends.size;
  }

  async run<T>(
    waitMs: number,
    clientGone: AbortSignal | undefined,
    poll: (end: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const end = new AbortController();
    const abort = (): void => end.abort();
    const timer = setTimeout(abort, waitMs);
    clientGone?.addEventListener('abort', abort);
    this.#ends.add(end);
    if (waitMs === 0 || clientGone?.aborted || this.#draining) end.abort();
    try {
      return await poll(end.signal);
    } finally {
      this.#ends.delete(end);
      clearTimeout(timer);
      clientGone?.removeEventListener('abort', abort);
    }
  }

  /** Nobody waits any more, and nobody will. */
  drain(): void {
    this.#draining = true;
    for (const end of this.#ends) end.abort();
  }
}
