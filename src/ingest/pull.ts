import {
  createInbox,
  type Msg,
  type NatsConnection,
  nanos,
  type Subscription,
} from '@nats-io/transport-node';

/** Why a request is over. LATER: the broker cannot serve it now. GONE: the consumer is not there, or it does not answer. */
export type PullEnd = 'DONE' | 'LATER' | 'GONE';

export interface PullOptions {
  nc: NatsConnection;
  stream: string;
  consumer: string;
  onMessage: (message: Msg) => void;
  onEnd: (end: PullEnd, why: string) => void;
}

const expiresMs = 10_000;
/** The broker says that a request expired; when it says nothing for so much longer, it does not know the request. */
const graceMs = 2000;

/** Asks a pull consumer for messages: one request at a time, whose messages come one by one. */
export class Pull {
  readonly #options: PullOptions;
  #inbox = '';
  #subscription: Subscription;
  #requests = 0;
  #timer: NodeJS.Timeout | null = null;
  /** Messages that were asked for and did not come yet. */
  outstanding = 0;

  constructor(options: PullOptions) {
    this.#options = options;
    this.#subscription = this.#subscribe();
  }

  request(batch: number): void {
    const { nc, stream, consumer } = this.#options;
    this.outstanding = batch;
    this.#requests++;
    const request = JSON.stringify({ batch, expires: nanos(expiresMs) });
    nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`, request, {
      reply: `${this.#inbox}.${this.#requests}`,
    });
    this.#timer = setTimeout(() => this.#end('GONE', 'no answer'), expiresMs + graceMs);
  }

  /** Messages that are on their way still come, until this settles. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer ?? undefined);
    this.outstanding = 0;
    if (!this.#options.nc.isClosed()) await this.#subscription.drain();
  }

  /** The same, after which it can be requested again: the broker forgets a request that nobody listens for. */
  async cancel(): Promise<void> {
    const stopped = this.stop();
    if (!this.#options.nc.isClosed()) this.#subscription = this.#subscribe();
    await stopped;
  }

  #subscribe(): Subscription {
    this.#inbox = createInbox();
    return this.#options.nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error) this.#end('GONE', error.message);
        else if (message.reply?.startsWith('$JS.ACK.')) this.#received(message);
        else this.#told(message);
      },
    });
  }

  #received(message: Msg): void {
    this.#options.onMessage(message);
    if (this.outstanding === 0) return;
    this.outstanding--;
    if (this.outstanding === 0) this.#end('DONE', 'complete');
  }

  /** Messages without a subject of their own tell about a request. */
  #told({ subject, headers }: Msg): void {
    const code = headers?.code ?? 0;
    if (subject !== `${this.#inbox}.${this.#requests}` || code === 100) return;
    const description = headers?.description ?? '';
    const isGone = code === 503 || code === 400 || (code === 409 && /deleted/i.test(description));
    const isOver = code === 404 || code === 408;
    this.#end(isGone ? 'GONE' : isOver ? 'DONE' : 'LATER', `${code} ${description}`);
  }

  #end(end: PullEnd, why: string): void {
    clearTimeout(this.#timer ?? undefined);
    this.outstanding = 0;
    this.#options.onEnd(end, why);
  }
}
