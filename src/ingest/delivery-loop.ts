import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { failureWithStack } from '../domain/failure.ts';
import type { Attached } from './attach.ts';
import { BatchSize } from './batch-size.ts';
import { headersOf, parseAckSubject } from './message.ts';
import { Pull } from './pull.ts';
import { databaseAnswers, OtherStream, type TakenIn, takeIn } from './take-in.ts';
import { type IngestContext, nakMs, type Source, type StreamMessage } from './types.ts';
import { backoffMs, wait } from './wait.ts';

/** A message that came and is not answered yet. */
interface Held extends StreamMessage {
  deliveries: number;
  answer(word: Answer): void;
}

type Answer = '+ACK' | '+TERM' | '+WPI' | `-NAK ${string}`;

const nak = (ms: number): Answer => `-NAK ${JSON.stringify({ delay: ms * 1_000_000 })}`;

export interface DeliveryLoopOptions {
  context: IngestContext;
  source: Source;
  nc: NatsConnection;
  attached: Attached;
  signal: AbortSignal;
  /** Nothing was fetched for a while, up to now. */
  onPause: () => void;
}

/**
 * Takes in what a consumer delivers. Only as many messages are asked for as are stored within half the ack wait; the
 * broker is told meanwhile that they are in work, and each is acknowledged after its event is committed.
 */
export class DeliveryLoop {
  readonly #options: DeliveryLoopOptions;
  readonly #size: BatchSize;
  readonly #pull: Pull;
  #waiting: Held[] = [];
  #working: Held[] = [];
  #gone: string | null = null;
  #isRefused = false;
  #wake: () => void = () => {};

  constructor(options: DeliveryLoopOptions) {
    this.#options = options;
    const { nc, source } = options;
    this.#size = new BatchSize(source.ackWaitSeconds, source.batch);
    this.#pull = new Pull({
      nc,
      stream: source.stream,
      consumer: source.consumer,
      onMessage: (message) => {
        const held = heldMessage(message);
        if (held) this.#waiting.push(held);
        this.#wake();
      },
      onEnd: (end, why) => {
        if (end === 'GONE') this.#gone = why;
        this.#isRefused = end === 'LATER';
        this.#wake();
      },
    });
  }

  /** Settles when the signal aborts, or when the consumer is not there any more: with the reason. */
  async run(): Promise<string> {
    const { source, signal, nc } = this.#options;
    const inWork = setInterval(() => this.#answerAll('+WPI'), (source.ackWaitSeconds * 1000) / 3);
    const onAbort = (): void => this.#wake();
    signal.addEventListener('abort', onAbort);
    try {
      while (!this.#isOver()) await this.#step();
      return this.#gone ?? 'stopped';
    } finally {
      clearInterval(inWork);
      signal.removeEventListener('abort', onAbort);
      // What is on its way comes still, and goes back at once, to another replica.
      await this.#pull.stop();
      if (!nc.isClosed()) this.#answerAll(nak(1));
    }
  }

  #isOver(): boolean {
    return this.#options.signal.aborted || this.#gone !== null;
  }

  async #step(): Promise<void> {
    if (this.#waiting.length === 0) {
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      if (this.#isRefused) await wait(backoffMs(2), this.#options.signal);
      if (this.#isOver()) return;
      if (this.#pull.outstanding === 0) this.#pull.request(this.#size.size);
      await woken;
      return;
    }
    this.#working = this.#waiting;
    this.#waiting = [];
    const started = performance.now();
    const taken = await this.#takeIn(this.#working);
    const isAgain = taken.some((each) => each?.kind === 'AGAIN');
    // Else what goes back would come at once for what is still asked for, and use up its deliveries during a pause.
    if (isAgain) await this.#pull.cancel();
    for (const [i, message] of this.#working.entries()) message.answer(this.#answerTo(taken[i]));
    const count = this.#working.length;
    this.#working = [];
    this.#size.took(count, performance.now() - started);
    if (isAgain) await this.#pause();
  }

  async #takeIn(messages: readonly Held[]): Promise<(TakenIn | undefined)[]> {
    const { context, source, attached } = this.#options;
    const isLast = (message: StreamMessage): boolean => (message as Held).deliveries >= source.maxDeliver;
    try {
      return await takeIn(context, source, attached.streamCreated, messages, isLast);
    } catch (error) {
      if (error instanceof OtherStream) this.#gone = error.message;
      // Some may be stored: they are found again by their keys.
      context.log.warn(
        { stream: source.stream, error: failureWithStack(error) },
        'messages have to be delivered again',
      );
      return messages.map(() => ({ kind: 'AGAIN' }));
    }
  }

  /** While the database is down nothing is fetched: each delivery in vain would bring a message nearer to its last. */
  async #pause(): Promise<void> {
    const { context, source, signal, onPause } = this.#options;
    if (await databaseAnswers(context)) return;
    context.log.warn({ stream: source.stream }, 'the database does not answer: nothing is fetched');
    for (let failures = 0; !signal.aborted; failures++) {
      this.#answerAll(nak(nakMs(source)));
      await wait(backoffMs(failures), signal);
      if (await databaseAnswers(context)) break;
    }
    onPause();
  }

  #answerTo(taken: TakenIn | undefined): Answer {
    switch (taken?.kind) {
      case 'STORED':
        return '+ACK';
      case 'REJECTED':
        return '+TERM';
      default:
        return nak(nakMs(this.#options.source));
    }
  }

  #answerAll(word: Answer): void {
    for (const message of [...this.#working, ...this.#waiting]) message.answer(word);
    if (word !== '+WPI') this.#waiting = [];
  }
}

function heldMessage(message: Msg): Held | null {
  const delivery = parseAckSubject(message.reply ?? '');
  if (!delivery) return null;
  return {
    subject: message.subject,
    data: message.data,
    ...headersOf(() => message.headers),
    sequence: delivery.sequence,
    storedAt: delivery.storedAt,
    deliveries: delivery.count,
    answer: (word) => void message.respond(word),
  };
}
