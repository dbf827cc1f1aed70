import { HttpError } from './http-error.ts';

/** How many streams each token may have open on this process. */
export class StreamCap {
  readonly #perToken: number;
  readonly #open = new Map<string, number>();

  constructor(perToken: number) {
    this.#perToken = perToken;
  }

  /** Of all tokens. */
  get taken(): number {
    return [...this.#open.values()].reduce((sum, open) => sum + open, 0);
  }

  /** Takes the place of a stream, or refuses it; the place is given back by what is returned. Null: no token, no cap. */
  take(tokenId: string | null): () => void {
    if (tokenId === null) return () => {};
    const open = this.#open.get(tokenId) ?? 0;
    if (open >= this.#perToken) {
      throw new HttpError(
        429,
        'TOO_MANY_STREAMS',
        `The token has ${open} streams open; at most ${this.#perToken} are allowed.`,
        { extensions: { limit: this.#perToken }, retryAfterSeconds: 5 },
      );
    }
    this.#open.set(tokenId, open + 1);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      const left = (this.#open.get(tokenId) ?? 1) - 1;
      if (left === 0) this.#open.delete(tokenId);
      else this.#open.set(tokenId, left);
    };
  }
}
