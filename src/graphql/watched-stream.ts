import type { Authority } from '../domain/credential.ts';
import { silentMs, watchAuthority } from './authority-watch.ts';
import { unauthenticated } from './errors.ts';

/**
 * A stream that ends with an error when its credential does: before each message, and every minute of silence. The
 * iterator is written by hand, so that one that waits can be stopped.
 */
export class WatchedStream<Message> implements AsyncIterableIterator<Message> {
  readonly #source: AsyncIterableIterator<Message>;
  readonly #authority: Authority;
  #over = false;

  constructor(source: AsyncIterableIterator<Message>, authority: Authority) {
    this.#source = source;
    this.#authority = authority;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Message>> {
    if (this.#over) return { done: true, value: undefined };
    let stop = (): void => {};
    const ended = new Promise<never>((_, reject) => {
      stop = watchAuthority(this.#authority, silentMs, () => reject(unauthenticated()));
    });
    try {
      const result = await Promise.race([this.#source.next(), ended]);
      if (!result.done && !(await this.#authority.stands())) throw unauthenticated();
      return result;
    } catch (error) {
      await this.return();
      throw error;
    } finally {
      stop();
    }
  }

  async return(): Promise<IteratorResult<Message>> {
    this.#over = true;
    await this.#source.return?.();
    return { done: true, value: undefined };
  }
}
