import { HttpError } from './http-error.ts';

/**
 * How fast each caller may ask this process: a bucket of a minute's requests that fills up steadily, so that bursts
 * pass and the average holds.
 */
export class RequestRate {
  readonly #perMinute: number;
  readonly #now: () => number;
  readonly #buckets = new Map<string, { left: number; at: number }>();

  /** 0 is no limit. */
  constructor(perMinute: number, now: () => number = () => performance.now()) {
    this.#perMinute = perMinute;
    this.#now = now;
  }

  /** Takes one request of a caller, or refuses it. */
  take(caller: string): void {
    if (this.#perMinute === 0) return;
    const now = this.#now();
    const perMs = this.#perMinute / 60_000;
    const bucket = this.#buckets.get(caller) ?? { left: this.#perMinute, at: now };
    const left = Math.min(this.#perMinute, bucket.left + (now - bucket.at) * perMs);
    // The newest last: those in front were idle long enough to be full, and are forgotten.
    this.#buckets.delete(caller);
    this.#buckets.set(caller, { left: left < 1 ? left : left - 1, at: now });
    this.#forgetIdle(now);
    if (left >= 1) return;
    throw new HttpError(
      429,
      'TOO_MANY_REQUESTS',
      `More than ${this.#perMinute} requests a minute were sent with one credential.`,
      { retryAfterSeconds: (1 - left) / perMs / 1000, extensions: { limit: this.#perMinute } },
    );
  }

  #forgetIdle(now: number): void {
    for (const [caller, { at }] of this.#buckets) {
      if (now - at < 60_000) return;
      this.#buckets.delete(caller);
    }
  }
}
