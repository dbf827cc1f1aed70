import { isUnavailable } from '../domain/unavailable.ts';

interface Waiting<Item, Outcome> {
  item: Item;
  size: number;
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
}

export interface GroupCommitOptions<Item, Outcome> {
  /** Applies a group in one transaction; outcomes in the group's order. */
  apply(items: readonly Item[]): Promise<Outcome[]>;
  /** Items with an equal key must not share a transaction: the later one has to see the earlier one's effect. */
  keysOf(item: Item): readonly string[];
  /** About the characters of JSON that an item holds. */
  sizeOf(item: Item): number;
  maxItems: number;
}

/**
 * Characters that the items of a group hold together: each is copied several times on its way, by us and by the database,
 * and a statement has to fit into a string. An item that holds more has a group of its own.
 */
const maxSize = 8 * 1024 * 1024;

/**
 * Lets commands that arrive together share a transaction: one fsync for all of them. While a group is being committed
 * the next one collects; there is no timer, so a lone command leaves at once. When a group fails as a whole its members
 * are repeated one by one, so that one caller's bad luck is not everybody's.
 */
export class GroupCommit<Item, Outcome> {
  readonly #options: GroupCommitOptions<Item, Outcome>;
  #waiting: Waiting<Item, Outcome>[] = [];
  #running: Promise<void> | null = null;

  constructor(options: GroupCommitOptions<Item, Outcome>) {
    this.#options = options;
  }

  submit(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, size: this.#options.sizeOf(item), resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Settles once everything submitted so far has its outcome. */
  async drained(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #run(): Promise<void> {
    // Commands of the same turn of the event loop join the first group.
    await new Promise(setImmediate);
    while (this.#waiting.length > 0) await this.#commit(this.#take());
    this.#running = null;
  }

  #take(): Waiting<Item, Outcome>[] {
    const group: Waiting<Item, Outcome>[] = [];
    const later: Waiting<Item, Outcome>[] = [];
    const keys = new Set<string>();
    let size = 0;
    let isFull = false;
    for (const waiting of this.#waiting) {
      const own = this.#options.keysOf(waiting.item);
      // Nothing passes one that has no room.
      isFull ||=
        group.length === this.#options.maxItems || (group.length > 0 && size + waiting.size > maxSize);
      if (!isFull && own.every((key) => !keys.has(key))) {
        group.push(waiting);
        size += waiting.size;
      } else later.push(waiting);
      // A deferred item's keys count too: nothing may overtake it.
      for (const key of own) keys.add(key);
    }
    this.#waiting = later;
    return group;
  }

  async #commit(group: readonly Waiting<Item, Outcome>[]): Promise<void> {
    try {
      const outcomes = await this.#options.apply(group.map(({ item }) => item));
      for (const [i, waiting] of group.entries()) waiting.resolve(outcomes[i] as Outcome);
    } catch (error) {
      // Without a database all fail alike; any other fault can be one member's.
      if (group.length === 1 || isUnavailable(error)) for (const waiting of group) waiting.reject(error);
      else for (const waiting of group) await this.#commit([waiting]);
    }
  }
}
