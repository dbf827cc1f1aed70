import type { Queryable } from '../db/pool.ts';
import { ListenConnection, type ListenTimes } from './listen-connection.ts';

export interface SignalOptions {
  /** A direct connection: LISTEN needs a session of its own. */
  connectionString: string;
  log: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
  /** Default: those of the product. */
  times?: SignalTimes;
}

export interface SignalTimes extends ListenTimes {
  pollEveryMs: number;
  pollEveryWhileDeafMs: number;
}
/** A dead connection is noticed within 15 s, and what it did not tell is read within 10 s. */
const productTimes: SignalTimes = {
  proveAliveEveryMs: 10_000,
  answerWithinMs: 4_000,
  pollEveryMs: 9_000,
  pollEveryWhileDeafMs: 1_000,
};

/** What can be told of. What agents tell is far more, and concerns far fewer, than what becomes of tasks. */
const channels = { changes: 'runplane_changed', attemptEvents: 'runplane_attempt_events' } as const;
export type Topic = keyof typeof channels;
const topics = Object.keys(channels) as Topic[];

/** Says to all replicas that something was committed, for who does it once and has no signal of their own. */
export async function tellReplicas(db: Queryable): Promise<void> {
  await db.query({ text: `notify ${channels.changes}` });
}

interface TopicState {
  listeners: Set<() => void>;
  localPending: boolean;
  notifyTimer: NodeJS.Timeout | null;
  lastNotify: number;
}
const quietTopic = (): TopicState => ({
  listeners: new Set(),
  localPending: false,
  notifyTimer: null,
  lastNotify: 0,
});

/** At most one NOTIFY of a topic in this time: a NOTIFY takes a lock that all committing writers would wait for. */
const notifyEveryMs = 20;

/**
 * Tells everybody in all replicas that something committed; what it was they read themselves. Telling is a hint and
 * never part of a write: it is sent after the commit and coalesced, and a poll that never stops covers what is lost.
 */
export class Signal {
  readonly #options: SignalOptions;
  readonly #topics: Record<Topic, TopicState> = { changes: quietTopic(), attemptEvents: quietTopic() };
  readonly #times: SignalTimes;
  #connection: ListenConnection | null = null;
  #stopped = false;
  #pollTimer: NodeJS.Timeout | null = null;
  #reconnectTimer: NodeJS.Timeout | null = null;
  #attempt = 0;

  constructor(options: SignalOptions) {
    this.#options = options;
    this.#times = options.times ?? productTimes;
  }

  /** Whether other replicas are heard at once; while not, they are heard by polling each second. */
  get listening(): boolean {
    return this.#connection !== null;
  }

  get listeners(): number {
    return topics.reduce((sum, topic) => sum + this.#topics[topic].listeners.size, 0);
  }

  async start(): Promise<void> {
    await this.#connect();
    this.#schedulePoll();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const untold = topics.filter((topic) => this.#topics[topic].notifyTimer);
    const timers = [this.#pollTimer, this.#reconnectTimer];
    for (const timer of [...timers, ...topics.map((topic) => this.#topics[topic].notifyTimer)]) {
      if (timer) clearTimeout(timer);
    }
    const connection = this.#connection;
    this.#connection = null;
    // Work that was handed back at the end is what the others should hear of; what is not sent they poll for.
    for (const topic of untold) await connection?.send(`notify ${channels[topic]}`).catch(() => {});
    await connection?.close();
  }

  /** Calls back after commits, here or in another replica; many commits may be one call. */
  onChange(listener: () => void, topic: Topic = 'changes'): () => void {
    const { listeners } = this.#topics[topic];
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Something was committed by this process. */
  changed(topic: Topic = 'changes'): void {
    const state = this.#topics[topic];
    if (!state.localPending) {
      state.localPending = true;
      setImmediate(() => {
        state.localPending = false;
        this.#emit(topic);
      });
    }
    if (state.notifyTimer || this.#stopped) return;
    const wait = Math.max(0, state.lastNotify + notifyEveryMs - performance.now());
    state.notifyTimer = setTimeout(() => this.#notify(topic), wait);
  }

  #emit(topic: Topic): void {
    for (const listener of this.#topics[topic].listeners) listener();
  }

  #emitAll(): void {
    for (const topic of topics) this.#emit(topic);
  }

  #notify(topic: Topic): void {
    const state = this.#topics[topic];
    state.notifyTimer = null;
    state.lastNotify = performance.now();
    // Where there is no connection, and where it is lost by this, the others poll.
    this.#connection?.send(`notify ${channels[topic]}`).catch(() => {});
  }

  async #connect(): Promise<void> {
    const connection = new ListenConnection({
      connectionString: this.#options.connectionString,
      channels: Object.values(channels),
      times: this.#times,
      onNotification: (channel) => {
        for (const topic of topics) if (channel === channels[topic]) this.#emit(topic);
      },
      onLost: (error) => this.#lost(connection, error),
    });
    try {
      await connection.open();
    } catch (error) {
      this.#retry(error);
      return;
    }
    if (this.#stopped) return connection.close();
    if (this.#attempt > 0) this.#options.log.info({}, 'listening to other replicas again');
    this.#attempt = 0;
    this.#connection = connection;
    // What happened before LISTEN was committed is read now.
    this.#emitAll();
  }

  #lost(connection: ListenConnection, error: unknown): void {
    if (this.#connection !== connection) return;
    this.#connection = null;
    this.#retry(error);
    this.#schedulePoll();
  }

  #retry(error: unknown): void {
    if (this.#stopped) return;
    this.#attempt++;
    const wait = Math.min(10_000, 250 * 2 ** Math.min(this.#attempt, 6)) * (0.5 + Math.random() / 2);
    this.#options.log.warn(
      { error: String(error), retryInMs: Math.round(wait) },
      'not listening to other replicas, polling instead',
    );
    this.#reconnectTimer = setTimeout(() => void this.#connect(), wait);
  }

  #schedulePoll(): void {
    if (this.#pollTimer) clearTimeout(this.#pollTimer);
    if (this.#stopped) return;
    this.#pollTimer = setTimeout(
      () => {
        this.#emitAll();
        this.#schedulePoll();
      },
      this.#connection ? this.#times.pollEveryMs : this.#times.pollEveryWhileDeafMs,
    );
  }
}
