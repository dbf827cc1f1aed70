import type pg from 'pg';
import type { Queryable, SentStatement, Statement } from './pool.ts';

export interface OpenTransactionOptions {
  begin: string;
  /** Whether statements go out without waiting for the answers to those before. */
  pipelined: boolean;
  /** The statement as the driver takes it; throws for what the driver would refuse. */
  prepare: (statement: Statement) => pg.QueryConfig;
}

/** A transaction on a connection that nobody else uses until it ended. */
export class OpenTransaction implements Queryable {
  readonly #client: pg.PoolClient;
  readonly #options: OpenTransactionOptions;
  readonly #begun: Promise<unknown>;
  /** The last statement that was submitted. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #sent: Promise<unknown>[] = [];
  /** What the first statement that failed failed by. */
  #failure: Error | null = null;
  /** Something waits for the beginning: nothing may overtake it. */
  #waits = false;
  #isOver = false;
  #isAbandoned = false;

  constructor(client: pg.PoolClient, options: OpenTransactionOptions) {
    this.#client = client;
    this.#options = options;
    this.#begun = this.#submit({ text: options.begin });
  }

  query<Row extends pg.QueryResultRow>(statement: Statement): Promise<pg.QueryResult<Row>> {
    return this.#noted(this.#query<Row>(statement));
  }

  send(statement: SentStatement): Promise<void> {
    return this.#noted(this.#send(statement));
  }

  /** Settles when everything is kept; rejects when it is not, or nobody knows. */
  async commit(): Promise<void> {
    await this.#begun;
    if (this.#failure) throw this.#failure;
    // Behind a statement that failed it undoes everything, and says so.
    const committed = this.#submit({ text: 'commit' });
    this.#isOver = true;
    await Promise.all(this.#sent);
    const { command } = await committed;
    if (command !== 'COMMIT') throw this.#failure ?? new Error(`The transaction ended with ${command}.`);
  }

  /**
   * Undoes everything after an error, whatever is still on its way. Answers why it came to that, and whether the
   * connection is as it was before.
   */
  async abandon(error: unknown): Promise<{ reason: unknown; isClean: boolean }> {
    this.#isOver = true;
    this.#isAbandoned = true;
    const sent = await Promise.allSettled(this.#sent);
    const isClean = await this.#client.query('rollback').then(
      () => true,
      () => false,
    );
    // Statements behind one that failed say no more than that there is one.
    const failed = sent.find((one) => one.status === 'rejected');
    return { reason: failed ? failed.reason : error, isClean };
  }

  async #query<Row extends pg.QueryResultRow>(statement: Statement): Promise<pg.QueryResult<Row>> {
    if (!statement.readsOnly || this.#waits) await this.#hasBegun();
    const answer = this.#submit<Row>(statement);
    await this.#begun;
    return answer;
  }

  async #send(statement: SentStatement): Promise<void> {
    await this.#hasBegun();
    this.#sent.push(this.#submit(statement));
  }

  async #hasBegun(): Promise<void> {
    this.#waits = true;
    await this.#begun;
  }

  #submit<Row extends pg.QueryResultRow>(statement: Statement): Promise<pg.QueryResult<Row>> {
    // Whoever goes on after the end would change something by itself, or in the next one's transaction.
    if (this.#isOver) throw new Error('The transaction is over.');
    const config = this.#options.prepare(statement);
    const answer = this.#options.pipelined
      ? this.#write<Row>(config)
      : this.#last.then(() => {
          if (this.#isAbandoned) throw new Error('The transaction is over.');
          return this.#client.query<Row>(config);
        });
    this.#last = answer;
    return this.#noted(answer);
  }

  /** What fails is heard of by whoever waits for it, and at the end: it is no fault when nobody waits. */
  #noted<T>(answer: Promise<T>): Promise<T> {
    answer.catch((error: unknown) => {
      this.#failure ??= error instanceof Error ? error : new Error(String(error));
    });
    return answer;
  }

  /** Statements of the same turn of the event loop leave by one write, which costs as much as many a statement. */
  #write<Row extends pg.QueryResultRow>(config: pg.QueryConfig): Promise<pg.QueryResult<Row>> {
    const { stream } = (this.#client as pg.PoolClient & Pick<pg.Client, 'connection'>).connection;
    if (stream.writableCorked === 0) {
      stream.cork();
      process.nextTick(() => stream.uncork());
    }
    return this.#client.query<Row>(config);
  }
}
