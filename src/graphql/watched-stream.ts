import type { Authority } from '../domain/credential.ts';
import { unauthenticated } from './errors.ts';

const silentMs = 60_000;

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
    const silence = new Silence(this.#authority);
    try {
      const result = await Promise.race([this.#source.next(), silence.broken]);
      if (!result.done && !(await this.#authority.stands())) throw unauthenticated();
      return result;
    } catch (error) {
      await this.return();
      throw error;
    } finally {
      silence.end();
    }
  }

  async return(): Promise<IteratorResult<Message>> {
    this.#over = true;
    await this.#source.return?.();
    return { done: true, value: undefined };
  }
}

/** The wait for a message, which breaks when the credential ends meanwhile. */
class Silence {
  readonly broken: Promise<never>;
  readonly #timer: NodeJS.Timeout;

  constructor(authority: Authority) {
    let breakIt: (error: unknown) => void = () => {};
    this.broken = new Promise<never>((_, reject) => {
      breakIt = reject;
    });
    this.#timer = setInterval(() => {
      authority.stands().then(
        (stands) => {
          if (!stands) breakIt(unauthenticated());
        },
        // Nobody can say now, and nothing is shown meanwhile: the next minute or message asks again.
        () => {},
      );
    }, silentMs);
  }

  end(): void {
    clearInterval(this.#timer);
  }
}
