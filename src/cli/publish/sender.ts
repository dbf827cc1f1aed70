import { setTimeout as delay } from 'node:timers/promises';
import { errors } from '../../errors.ts';
import { CommandError } from '../command.ts';
import { readOperations } from '../graphql-client.ts';
import type { OutgoingEvent } from './events.ts';

/** What the server says of an event. */
export interface PublishOutcome {
  __typename: string;
  message?: string;
  runIds?: string[];
  replayed?: boolean;
  refusals?: { route: string; message: string }[];
  retryAfterSeconds?: number | null;
}

export interface SenderOptions {
  url: string;
  token: string | null;
  /** How long it is tried without any success. */
  retryForSeconds: number;
  /** Hears why it is tried again, and when. */
  onRetry: (reason: string, seconds: number) => void;
}

/** Why a request may well succeed when it is repeated. */
class Again extends Error {
  readonly afterSeconds: number;
  constructor(message: string, afterSeconds: number | null) {
    super(message);
    this.afterSeconds = afterSeconds ?? 0;
  }
}

const longestWaitSeconds = 15;
const answerWithinMs = 60_000;
const head = `{"query":${JSON.stringify(readOperations('publish.graphql'))},"operationName":"PublishLines","variables":{"inputs":[`;
const tail = ']}}';

/** Bytes of a request besides its inputs. */
export const requestBytes = Buffer.byteLength(head + tail);

/** Sends events until the server has decided each of them. They have keys, so what is repeated is stored once. */
export class Sender {
  readonly #options: SenderOptions;
  readonly #endpoint: string;

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#endpoint = `${options.url.replace(/\/+$/, '').replace(/\/graphql$/, '')}/graphql`;
  }

  /** The outcomes in the order of the events. */
  async send(events: readonly OutgoingEvent[]): Promise<PublishOutcome[]> {
    const outcomes = new Map<OutgoingEvent, PublishOutcome>();
    let open = [...events];
    let failures = 0;
    let succeeded = performance.now();
    while (open.length > 0) {
      let again: Again;
      try {
        const answers = await this.#post(open);
        const undecided: OutgoingEvent[] = [];
        let why: PublishOutcome | null = null;
        for (const [i, event] of open.entries()) {
          const outcome = answers[i] as PublishOutcome;
          if (outcome.__typename === 'Unavailable') {
            undecided.push(event);
            why = outcome;
          } else outcomes.set(event, outcome);
        }
        if (!why) break;
        if (undecided.length < open.length) {
          failures = 0;
          succeeded = performance.now();
        }
        open = undecided;
        again = new Again(why.message ?? 'The server is not available.', why.retryAfterSeconds ?? null);
      } catch (error) {
        if (!(error instanceof Again)) throw error;
        again = error;
      }
      const seconds = waitSeconds(failures++, again.afterSeconds);
      const { retryForSeconds, onRetry } = this.#options;
      if ((performance.now() - succeeded) / 1000 + seconds > retryForSeconds)
        throw new CommandError(`Nothing could be published for ${retryForSeconds} s: ${again.message}`);
      onRetry(again.message, seconds);
      await delay(seconds * 1000);
    }
    return events.map((event) => outcomes.get(event) as PublishOutcome);
  }

  async #post(events: readonly OutgoingEvent[]): Promise<PublishOutcome[]> {
    const { token } = this.#options;
    let response: Response;
    let text: string;
    // Not AbortSignal.timeout, whose timer does not keep the process: when a server is killed, fetch can lose a request.
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new DOMException('late', 'TimeoutError')), answerWithinMs);
    try {
      response = await fetch(this.#endpoint, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          ...(token !== null && { authorization: `Bearer ${token}` }),
        },
        body: head + events.map(({ json }) => json).join(',') + tail,
        redirect: 'error',
        signal: late.signal,
      });
      text = await response.text();
    } catch (error) {
      throw new Again(`No answer from ${this.#endpoint}: ${reasonOf(error)}.`, null);
    } finally {
      clearTimeout(timer);
    }
    return this.#outcomesOf(response, text, events.length);
  }

  #outcomesOf(response: Response, text: string, count: number): PublishOutcome[] {
    const { status } = response;
    const answer = answerOf(text);
    const problem = answer?.errors?.[0];
    const code = problem?.extensions?.code ?? '';
    const outcomes = answer?.data?.publishEvents;
    if (outcomes?.length === count) return outcomes;
    const message =
      problem?.message ?? `${this.#endpoint} answers with status ${status}, and not as Runplane does.`;
    const isKnown = code in errors;
    const retryable = isKnown
      ? errors[code as keyof typeof errors].retryable
      : status === 429 || status >= 500;
    if (retryable) throw new Again(message, retryAfter(response));
    const hint = status === 401 ? ' RUNPLANE_TOKEN has to be a token with the scope PUBLISH.' : '';
    throw new CommandError(`The server refuses to publish (${code || status}): ${message}${hint}`);
  }
}

interface Answer {
  data?: { publishEvents?: PublishOutcome[] | null } | null;
  errors?: { message: string; extensions?: { code?: string } }[];
}

/** Null: it is none of GraphQL, such as the page of a proxy. */
function answerOf(text: string): Answer | null {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === 'object' && answer !== null ? answer : null;
  } catch {
    return null;
  }
}

/** Twice as long each time, and each client at a time of its own; never before the server wants it. */
function waitSeconds(failures: number, afterSeconds: number): number {
  const backoff = Math.min(longestWaitSeconds, 0.25 * 2 ** Math.min(failures, 10));
  return afterSeconds > 0
    ? afterSeconds + Math.random() * Math.min(1, backoff)
    : backoff * (0.5 + Math.random() / 2);
}

/** Seconds, or a date. */
function retryAfter({ headers }: Response): number | null {
  const value = headers.get('retry-after');
  if (value === null) return null;
  const seconds = /^\d+(\.\d+)?$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : null;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `none within ${answerWithinMs / 1000} s`;
  // What fetch throws says that it failed; its cause says why.
  const { cause } = error;
  if (cause instanceof Error) return cause.message || ('code' in cause ? String(cause.code) : cause.name);
  return error.message;
}
