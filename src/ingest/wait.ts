/** Settles after a time, or at once when the signal aborts. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}

/** Longer after each failure in a row, and never the same for all who wait. */
export function backoffMs(failures: number, maxMs = 10_000): number {
  return Math.min(maxMs, 250 * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2);
}
