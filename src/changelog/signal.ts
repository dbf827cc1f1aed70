import pg from 'pg';

export interface SignalOptions {
  /** A direct connection: LISTEN needs a session of its own. */
  connectionString: string;
  log: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
}

/** What can be told of. What agents tell is far more, and concerns far fewer, than what becomes of tasks. */
const channels = { changes: 'runplane_changed', attemptEvents: 'runplane_attempt_events' } as const;
export type Topic = keyof typeof channels;
const topics = Object.keys(channels) as Topic[];

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
const proveAliveEveryMs = 10_000;
const proveAliveTimeoutMs = 5_000;
const pollEveryMs = 10_000;
const pollEveryWhileDeafMs = 1_000;

/**
 * Tells everybody in all replicas that something committed; what it was they read themselves. Telling is a hint and
 * never part of a write: it is sent after the commit and coalesced, and a poll that never stops covers what is lost.
 */
export class Signal {
  readonly #options: SignalOptions;
  readonly #topics: Record<Topic, TopicState> = { changes: quietTopic(), attemptEvents: quietTopic() };
  #client: pg.Client | null = null;
  #stopped = false;
  #pollTimer: NodeJS.Timeout | null = null;
  #reconnectTimer: NodeJS.Timeout | null = null;
  #aliveTimer: NodeJS.Timeout | null = null;
  #attempt = 0;
  #sending: Promise<unknown> = Promise.resolve();

  constructor(options: SignalOptions) {
    this.#options = options;
  }

  /** Whether other replicas are heard at once; while not, they are heard by polling each second. */
  get listening(): boolean {
    return this.#client !== null;
  }

  async start(): Promise<void> {
    await this.#connect();
    this.#schedulePoll();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const untold = topics.filter((topic) => this.#topics[topic].notifyTimer);
    const timers = [this.#pollTimer, this.#reconnectTimer, this.#aliveTimer];
    for (const timer of [...timers, ...topics.map((topic) => this.#topics[topic].notifyTimer)]) {
      if (timer) clearTimeout(timer);
    }
    const client = this.#client;
    this.#client = null;
    // Work that was handed back at the end is what the others should hear of.
    if (client)
      for (const topic of untold) await this.#send(client, `notify ${channels[topic]}`).catch(() => {});
    await client?.end();
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
    const client = this.#client;
    // While there is no connection the others poll each second, as this process does.
    if (client)
      this.#send(client, `notify ${channels[topic]}`).catch((error: unknown) => this.#lost(client, error));
  }

  async #connect(): Promise<void> {
    const client = new pg.Client({ connectionString: this.#options.connectionString, keepAlive: true });
    client.on('error', (error) => this.#lost(client, error));
    client.on('end', () => this.#lost(client, new Error('the connection ended')));
    client.on('notification', (message) => {
      // Our own was told locally before it was sent.
      if (message.processId === (client as pg.Client & { processID: number }).processID) return;
      for (const topic of topics) if (message.channel === channels[topic]) this.#emit(topic);
    });
    try {
      await client.connect();
      for (const topic of topics) await client.query(`listen ${channels[topic]}`);
    } catch (error) {
      await client.end().catch(() => {});
      this.#retry(error);
      return;
    }
    if (this.#stopped) return client.end();
    if (this.#attempt > 0) this.#options.log.info({}, 'listening to other replicas again');
    this.#attempt = 0;
    this.#sending = Promise.resolve();
    this.#client = client;
    this.#proveAlive(client);
    // What happened before LISTEN was committed is read now.
    this.#emitAll();
  }

  /** A connection can be dead without anybody saying so: only an answer proves that it lives. */
  #proveAlive(client: pg.Client): void {
    this.#aliveTimer = setTimeout(() => {
      const late = setTimeout(() => this.#lost(client, new Error('no answer for 5 s')), proveAliveTimeoutMs);
      this.#send(client, 'select 1').then(
        () => {
          clearTimeout(late);
          if (this.#client === client) this.#proveAlive(client);
        },
        (error: unknown) => {
          clearTimeout(late);
          this.#lost(client, error);
        },
      );
    }, proveAliveEveryMs);
  }

  /** One statement after the other: the connection takes no second one while it has one. */
  #send(client: pg.Client, statement: string): Promise<unknown> {
    const sent = this.#sending.then(() => client.query(statement));
    this.#sending = sent.catch(() => {});
    return sent;
  }

  #lost(client: pg.Client, error: unknown): void {
    if (this.#client !== client) return;
    this.#client = null;
    if (this.#aliveTimer) clearTimeout(this.#aliveTimer);
    client.end().catch(() => {});
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
      this.#client ? pollEveryMs : pollEveryWhileDeafMs,
    );
  }
}
