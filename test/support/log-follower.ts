import { type EventStream, openEventStream } from './event-stream.ts';

interface Change {
  id: string;
  sequence: number;
  object: string;
}
interface Message {
  data: { told: { changes: Change[] } };
  errors: { extensions: { code: string } }[];
}

export interface FollowerOptions {
  /** Of replicas; each stream goes to one of them by chance. */
  urls: readonly string[];
  of: 'tasks' | 'runs';
  /** Correlation id of the runs; null: of all. */
  share: string | null;
  after: string;
}

/** Follows the change log over every break, from the cursor of the last message, and keeps account of what it was told. */
export class LogFollower {
  readonly #options: FollowerOptions;
  /** The last change of each object, whose sequence is also the number of its changes that were told. */
  readonly #last = new Map<string, number>();
  readonly #ids: Set<string> | null;
  /** Changes that were told, each counted once. */
  seen = 0;
  repeated = 0;
  reconnects = 0;
  /** How often its stream ended because it was behind for longer than is tolerated. */
  slow = 0;
  /** What must not be. */
  readonly faults: string[] = [];
  #cursor: string;
  #stream: EventStream | null = null;
  #stopped = false;

  constructor(options: FollowerOptions, keepIds: boolean) {
    this.#options = options;
    this.#cursor = options.after;
    this.#ids = keepIds ? new Set() : null;
  }

  get options(): FollowerOptions {
    return this.#options;
  }

  /** Breaks the stream, which is then opened again. */
  break(): void {
    this.#stream?.leave();
  }

  stop(): void {
    this.#stopped = true;
    this.break();
  }

  async follow(onSeen: (changes: number) => void): Promise<void> {
    while (!this.#stopped) {
      // A replica that is gone, a stream that is cut: the next one goes on.
      await this.#followOnce(onSeen).catch(() => {});
      this.reconnects++;
      if (!this.#stopped) await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 80));
    }
  }

  async #followOnce(onSeen: (changes: number) => void): Promise<void> {
    const { urls, of, share } = this.#options;
    const [field, object] = of === 'tasks' ? ['taskStatusChanged', 'taskId'] : ['runStatusChanged', 'runId'];
    const filter = share === null ? '' : `(filter: { correlationId: "${share}" })`;
    const query = `subscription { told: ${field}${filter} { cursor changes { id sequence object: ${object} } } }`;
    const url = urls[Math.floor(Math.random() * urls.length)] ?? '';
    const stream = await openEventStream(url, query, { 'last-event-id': this.#cursor });
    this.#stream = stream;
    if (this.#stopped) return;
    for (;;) {
      const event = await stream.next();
      if (event?.event !== 'next') return;
      const { data, errors } = JSON.parse(event.data) as Partial<Message>;
      if (!data || event.id === null) {
        if (errors?.[0]?.extensions.code === 'SLOW_CONSUMER') this.slow++;
        else this.faults.push(event.data);
        return;
      }
      const before = this.seen;
      for (const change of data.told.changes) this.#take(change);
      this.#cursor = event.id;
      onSeen(this.seen - before);
    }
  }

  #take({ id, sequence, object }: Change): void {
    const last = this.#last.get(object) ?? 0;
    const isKnown = sequence <= last;
    if (sequence > last + 1) this.faults.push(`${object}: ${sequence} after ${last}`);
    // The same change has the same id whenever it is told.
    if (this.#ids && this.#ids.has(id) !== isKnown) this.faults.push(`${object}: ${id} is ${sequence}`);
    if (isKnown) {
      this.repeated++;
      return;
    }
    this.#ids?.add(id);
    this.#last.set(object, sequence);
    this.seen++;
  }
}
