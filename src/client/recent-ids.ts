/** The ids that came last, to know what comes again; bounded, so that a watch may last for ever. */
export class RecentIds {
  readonly #most: number;
  readonly #ids = new Set<string>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Whether it is none of them; it is then. */
  add(id: string): boolean {
    const known = this.#ids.delete(id);
    this.#ids.add(id);
    if (this.#ids.size > this.#most) {
      const [oldest] = this.#ids;
      if (oldest !== undefined) this.#ids.delete(oldest);
    }
    return !known;
  }
}
