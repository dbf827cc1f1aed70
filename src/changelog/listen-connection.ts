import { Socket } from 'node:net';
import pg from 'pg';

export interface ListenTimes {
  /** How often it has to show that it lives. */
  proveAliveEveryMs: number;
  /** How long it may take for an answer, to connect too. */
  answerWithinMs: number;
}

export interface ListenConnectionOptions {
  connectionString: string;
  channels: readonly string[];
  times: ListenTimes;
  /** Somebody else notified. */
  onNotification: (channel: string) => void;
  /** Once, when an open one can be relied on no more. */
  onLost: (error: unknown) => void;
}

/**
 * A session that listens. A connection can be dead without anybody saying so, when packets are dropped and nothing is
 * closed: only an answer proves that it lives, and nothing of it is waited for without an end.
 */
export class ListenConnection {
  readonly #options: ListenConnectionOptions;
  // Its own, to be closed whatever the protocol would wait for.
  readonly #socket = new Socket();
  readonly #client: pg.Client;
  #state: 'OPENING' | 'OPEN' | 'OVER' = 'OPENING';
  #sending: Promise<unknown> = Promise.resolve();
  #proof: NodeJS.Timeout | null = null;

  constructor(options: ListenConnectionOptions) {
    this.#options = options;
    const { connectionString, times } = options;
    this.#client = new pg.Client({
      connectionString,
      keepAlive: true,
      connectionTimeoutMillis: times.answerWithinMs,
      query_timeout: times.answerWithinMs,
      stream: () => this.#socket,
    });
    const client = this.#client as pg.Client & { processID: number };
    client.on('error', (error) => this.#lose(error));
    client.on('end', () => this.#lose(new Error('the connection ended')));
    client.on('notification', ({ processId, channel }) => {
      // Our own was told locally before it was sent.
      if (processId !== client.processID) options.onNotification(channel);
    });
  }

  /** Settles when it listens. */
  async open(): Promise<void> {
    try {
      await this.#client.connect();
      for (const channel of this.#options.channels) await this.send(`listen ${channel}`);
    } catch (error) {
      this.#end();
      throw error;
    }
    if (this.#state === 'OVER') throw new Error('the connection ended');
    this.#state = 'OPEN';
    this.#proveAlive();
  }

  /** One statement after the other: the connection takes no second one while it has one. */
  send(statement: string): Promise<unknown> {
    const sent = this.#sending.then(() => this.#client.query(statement));
    this.#sending = sent.catch((error: unknown) => this.#lose(error));
    return sent;
  }

  /** Says goodbye, for as long as that is answered. */
  async close(): Promise<void> {
    this.#state = 'OVER';
    if (this.#proof) clearTimeout(this.#proof);
    const unanswered = setTimeout(() => this.#socket.destroy(), this.#options.times.answerWithinMs);
    await this.#client.end();
    clearTimeout(unanswered);
  }

  #proveAlive(): void {
    this.#proof = setTimeout(() => {
      this.send('select 1').then(
        () => this.#state === 'OPEN' && this.#proveAlive(),
        // It is lost.
        () => {},
      );
    }, this.#options.times.proveAliveEveryMs);
  }

  #lose(error: unknown): void {
    const wasOpen = this.#state === 'OPEN';
    this.#end();
    if (wasOpen) this.#options.onLost(error);
  }

  #end(): void {
    this.#state = 'OVER';
    if (this.#proof) clearTimeout(this.#proof);
    this.#socket.destroy();
  }
}
