export interface Timing {
  /** A stream that sends nothing for longer is given up: a server sends something at least every 15 s. */
  silentMs: number;
  /** How long an answer, and the first message of a stream, may take. */
  answerMs: number;
  /** How long a page waits for a change. */
  pollMs: number;
  /** Between pages that have changes. */
  gapMs: number;
  /** Before a reconnect, where the server says nothing. */
  retryMs: number;
  /** The longest wait before a reconnect that was not asked for. */
  maxRetryMs: number;
}

export const defaultTiming: Timing = {
  silentMs: 20_000,
  answerMs: 10_000,
  pollMs: 10_000,
  gapMs: 1_000,
  retryMs: 2_000,
  maxRetryMs: 30_000,
};

/** How long to wait after so many failures in a row: longer each time, and spread out, so that clients do not come together. */
export function backoffMs(failures: number, retryMs: number, maxMs: number): number {
  return Math.min(maxMs, retryMs * 2 ** Math.max(0, failures - 1)) * (0.5 + Math.random());
}

/** Settles after the time, or at once when it is stopped. */
export function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stop.aborted || ms <= 0) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      stop.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    stop.addEventListener('abort', end);
  });
}

/** Aborts a request when what is awaited takes too long, and when it is stopped. */
export class Deadline {
  readonly #abort = new AbortController();
  readonly #stop: AbortSignal;
  readonly #stopped = (): void => this.#abort.abort();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #passed = false;

  constructor(stop: AbortSignal) {
    this.#stop = stop;
    if (stop.aborted) this.#stopped();
    stop.addEventListener('abort', this.#stopped);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get passed(): boolean {
    return this.#passed;
  }

  within(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#passed = true;
      this.#abort.abort();
    }, ms);
  }

  /** Nothing is awaited now. */
  rest(): void {
    clearTimeout(this.#timer);
  }

  /** The request is over, whether it was answered or not. */
  end(): void {
    clearTimeout(this.#timer);
    this.#stop.removeEventListener('abort', this.#stopped);
    this.#abort.abort();
  }
}
