import pg from 'pg';
import { OpenTransaction } from './open-transaction.ts';

// int8 and numeric arrive as text by default. Sums of tokens and sequence numbers stay below 2^53, so they are numbers
// here; numeric (money) stays text and never becomes a float.
pg.types.setTypeParser(pg.types.builtins.INT8, (text) => Number(text));

const parseAnyTime = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ, 'text') as (
  text: string,
) => unknown;
// Every row that is read has times. As they come from a session in UTC, the engine reads them several times as fast as the driver.
pg.types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, (text) =>
  text.charAt(4) === '-' && text.endsWith('+00')
    ? new Date(`${text.slice(0, 10)}T${text.slice(11, -3)}Z`)
    : parseAnyTime(text),
);

export interface DatabaseTimeouts {
  /** Milliseconds after which the database ends a statement; 0 is never. */
  statement: number;
  lock: number;
  idleInTransaction: number;
}

export interface DatabaseOptions {
  connectionString: string;
  maxConnections: number;
  timeouts: DatabaseTimeouts;
  /** False behind a pooler in transaction mode, where the next statement may meet another session. */
  ownSessions: boolean;
  applicationName: string;
  onError: (error: Error) => void;
}

export interface Queryable {
  query<Row extends pg.QueryResultRow>(statement: Statement): Promise<pg.QueryResult<Row>>;
  /**
   * The same where nobody needs the answer: a transaction goes on at once, without waiting for it, and fails before its
   * end if the statement fails.
   */
  send(statement: SentStatement): Promise<void>;
}

export interface Statement {
  /** Prepared under this name where sessions are our own. */
  name?: string;
  text: string;
  values?: unknown[];
  /** It changes nothing and at most locks, so it may be sent before it is known that its transaction began. */
  readsOnly?: true;
}

/** One that goes out before the answer to it: what the driver refused by itself would be missing in what is kept then. */
export interface SentStatement extends Statement {
  values?: (string | number | boolean | null | readonly (string | number | boolean | null)[])[];
}

/**
 * From here on a transaction finds its rows by key, and is planned so. A statement with a name is planned once for its
 * session: all that use the same one have to plan it like this.
 */
export const planByKey = [
  'enable_seqscan = off',
  'enable_hashjoin = off',
  'enable_mergejoin = off',
  'enable_material = off',
  'plan_cache_mode = force_generic_plan',
]
  .map((setting) => `set local ${setting}`)
  .join('; ');

/** A pool of connections that all have the same settings. */
export class Database implements Queryable {
  readonly pool: pg.Pool;
  /** True: sessions are ours alone. False: behind a pooler, where only a transaction is. */
  readonly #ownSessions: boolean;
  /** Begins a transaction with its isolation level stated, because the database's default may be another. */
  readonly begin: string;
  /**
   * Begins a transaction whose statements find their rows by key. Their plans are kept, and one that was made while a
   * table was empty would scan it when it is full.
   */
  readonly beginByKey: string;
  /** Of each name that was used. */
  readonly #texts = new Map<string, string>();

  constructor(options: DatabaseOptions) {
    this.#ownSessions = options.ownSessions;
    // Settings are sent as statements and not as startup parameters, which poolers refuse. They belong to the session
    // where it is ours, else to each transaction.
    const scope = options.ownSessions ? '' : 'local ';
    const settings = [
      `set ${scope}statement_timeout = ${options.timeouts.statement}`,
      `set ${scope}lock_timeout = ${options.timeouts.lock}`,
      `set ${scope}idle_in_transaction_session_timeout = ${options.timeouts.idleInTransaction}`,
      // Compiling a plan takes longer than any statement here, and before Postgres 18 a setting that rules out a way to
      // scan makes plans look expensive enough for it.
      `set ${scope}jit = off`,
    ].join('; ');
    const begin = 'begin isolation level read committed';
    this.begin = options.ownSessions ? begin : `${begin}; ${settings}`;
    this.beginByKey = `${this.begin}; ${planByKey}`;
    const session = `${settings}; set default_transaction_isolation = 'read committed'`;
    this.pool = new pg.Pool({
      connectionString: options.connectionString,
      max: options.maxConnections,
      // Statements go out without waiting for the answers to those before; a pooler may not expect that.
      pipeline: options.ownSessions,
      application_name: options.applicationName,
      idleTimeoutMillis: 60_000,
      // pg-pool awaits what this returns, though its type says otherwise.
      ...(options.ownSessions && { onConnect: (client: pg.ClientBase): unknown => client.query(session) }),
    });
    // An error of a connection in use that nobody hears would end the process. Whoever uses it
    // learns of its end by the statement that fails, and the pool takes it back no more.
    this.pool.on('connect', (client) => client.on('error', () => {}));
    this.pool.on('error', (error) => {
      if (!this.pool.ending) options.onError(error);
    });
  }

  /** One statement, a transaction of its own. Behind a pooler that is spelled out: its settings hold nowhere else. */
  async query<Row extends pg.QueryResultRow>(statement: Statement): Promise<pg.QueryResult<Row>> {
    return this.#ownSessions
      ? this.pool.query<Row>(this.#prepare(statement))
      : this.inTransaction(this.begin, (tx) => tx.query<Row>(statement));
  }

  async send(statement: Statement): Promise<void> {
    await this.query(statement);
  }

  async inTransaction<T>(begin: string, work: (tx: Queryable) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    // A connection that cannot even roll back is closed instead of reused.
    let isClean = true;
    try {
      const tx = new OpenTransaction(client, {
        begin,
        pipelined: this.#ownSessions,
        prepare: (statement) => this.#prepare(statement),
      });
      try {
        const result = await work(tx);
        await tx.commit();
        return result;
      } catch (error) {
        const end = await tx.abandon(error);
        isClean = end.isClean;
        throw end.reason;
      }
    } finally {
      client.release(!isClean);
    }
  }

  /** The statement as the driver takes it. Two of one name are refused here, since the driver knows only its own session's. */
  #prepare(statement: Statement): pg.QueryConfig {
    const { name, text, values } = statement;
    if (name !== undefined) {
      const known = this.#texts.get(name);
      if (known === undefined) this.#texts.set(name, text);
      else if (known !== text) throw new Error(`There is another statement named ${name}.`);
    }
    return this.#ownSessions ? statement : { text, values };
  }

  async close(): Promise<void> {
    await this.pool.end();
  }
}
