const everyMs = 60_000;
const gatherMs = 5_000;

interface Options {
  write: (ids: readonly string[]) => Promise<void>;
  clock: () => number;
  onError: (error: unknown) => void;
}

/** Remembers which tokens are used, and writes it down for all of them together, each at most once a minute. */
export class LastUsed {
  readonly #options: Options;
  readonly #writtenAt = new Map<string, number>();
  readonly #due = new Set<string>();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: Options) {
    this.#options = options;
  }

  touch(id: string): void {
    const writtenAt = this.#writtenAt.get(id);
    if (writtenAt !== undefined && this.#options.clock() < writtenAt + everyMs) return;
    this.#due.add(id);
    this.#timer ??= setTimeout(() => void this.flush(), gatherMs).unref();
  }

  /** Writes what is due. A failure only makes it older: the next use tries again. */
  async flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const ids = [...this.#due];
    this.#due.clear();
    const now = this.#options.clock();
    for (const [id, at] of this.#writtenAt) if (now >= at + everyMs) this.#writtenAt.delete(id);
    if (ids.length === 0) return;
    for (const id of ids) this.#writtenAt.set(id, now);
    try {
      await this.#options.write(ids);
    } catch (error) {
      for (const id of ids) this.#writtenAt.delete(id);
      this.#options.onError(error);
    }
  }
}
