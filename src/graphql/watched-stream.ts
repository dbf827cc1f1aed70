import type { MessageStream } from '../changelog/types.ts';
import type { Authority } from '../domain/credential.ts';
import { silentMs, watchAuthority } from './authority-watch.ts';
import { unauthenticated } from './errors.ts';

/**
 * A stream that ends with an error when its credential does: before each message, and every minute of silence. The
 * iterator is written by hand, so that one that waits can be stopped.
 */
export class WatchedStream<Message> implements MessageStream<Message> {
  readonly #source: MessageStream<Message>;
  readonly #authority: Authority;
  readonly #unwatch: () => void;
  #ended = false;
  #over = false;
  /** Ends the wait for a message. */
  #refuse: (() => void) | null = null;

  constructor(source: MessageStream<Message>, authority: Authority) {
    this.#source = source;
    this.#authority = authority;
    this.#unwatch = watchAuthority(authority, silentMs, () => {
      this.#ended = true;
      this.#refuse?.();
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Where the database has to be asked about the credential, a message waits for the answer. */
  offerTo(take: (message: Message) => boolean): void {
    this.#source.offerTo?.((message) => !this.#ended && this.#authority.surelyStands() && take(message));
  }

  async next(): Promise<IteratorResult<Message>> {
    if (this.#over) return { done: true, value: undefined };
    try {
      const result = await this.#nextOfSource();
      if (!result.done && !(await this.#authority.stands())) throw unauthenticated();
      if (result.done) await this.return();
      return result;
    } catch (error) {
      await this.return();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<Message>> {
    this.#over = true;
    this.#unwatch();
    await this.#source.return?.();
    return { done: true, value: undefined };
  }

  #nextOfSource(): Promise<IteratorResult<Message>> {
    return new Promise((resolve, reject) => {
      this.#refuse = () => reject(unauthenticated());
      if (this.#ended) this.#refuse();
      else this.#source.next().then(resolve, reject);
    });
  }
}
