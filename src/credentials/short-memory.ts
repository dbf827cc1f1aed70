/** How long what is known of a credential may be believed: with the time between two looks of who waits, 30 s. */
const memoryMs = 25_000;
const maxEntries = 10_000;

interface Entry<Row> {
  row: Promise<Row | null>;
  /** What the promise gave. */
  arrived: Row | null;
  until: number;
}

interface Options<Row> {
  read: (id: string) => Promise<Row | null>;
  /** A clock that does not jump, in milliseconds. */
  clock: () => number;
}

/**
 * Rows of credentials, as they were at most 25 s ago, so that not every request and event asks the database. What is
 * not there is not remembered: ids that somebody makes up take no room.
 */
export class ShortMemory<Row extends { secondsLeft: number | null }> {
  readonly #entries = new Map<string, Entry<Row>>();
  readonly #options: Options<Row>;

  constructor(options: Options<Row>) {
    this.#options = options;
  }

  get(id: string): Promise<Row | null> {
    const known = this.#entries.get(id);
    // The age counts from before the database was asked.
    const now = this.#options.clock();
    return known && now < known.until ? known.row : this.#read(id, now);
  }

  /** A row that is there without asking for it. */
  remembered(id: string): Row | null {
    const known = this.#entries.get(id);
    return known && this.#options.clock() < known.until ? known.arrived : null;
  }

  /** What was read so far is not believed any more. */
  forget(id: string): void {
    this.#entries.delete(id);
  }

  #read(id: string, now: number): Promise<Row | null> {
    const entry: Entry<Row> = { row: Promise.resolve(null), arrived: null, until: now + memoryMs };
    const drop = (): void => {
      if (this.#entries.get(id) === entry) this.#entries.delete(id);
    };
    entry.row = this.#options.read(id).then(
      (row) => {
        if (!row) drop();
        // The database says how long it is good for; until then this clock counts.
        else if (row.secondsLeft !== null) entry.until = Math.min(entry.until, now + row.secondsLeft * 1000);
        entry.arrived = row;
        return row;
      },
      (error: unknown) => {
        drop();
        throw error;
      },
    );
    this.#entries.delete(id);
    if (this.#entries.size >= maxEntries) this.#dropOldest();
    this.#entries.set(id, entry);
    return entry.row;
  }

  #dropOldest(): void {
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined) this.#entries.delete(oldest);
  }
}
