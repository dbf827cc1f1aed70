import { dataOf, failureOf, Refused, TryLater } from './answers.ts';
import { document } from './document.ts';
import type { Deadline } from './timing.ts';

/** A Runplane server as it is reached by fetch, which Node and browsers share. */
export class Server {
  readonly #url: string;
  readonly #headers: Record<string, string>;

  /** Throws when the URL or the token cannot be sent at all. */
  constructor(url: string, token: string | undefined) {
    this.#url = url;
    this.#headers = {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
    void new Request(url, { method: 'POST', headers: this.#headers });
  }

  /** Throws TryLater, or Refused. */
  async ask<Data>(operationName: string, variables: object, deadline: Deadline): Promise<Data> {
    const accept = 'application/graphql-response+json, application/json;q=0.9';
    const response = await this.#send(operationName, variables, accept, deadline);
    const text = await reached(response.text(), deadline);
    if (!response.ok) throw failureOf(response, text);
    return dataOf(text) as Data;
  }

  /** Opens a stream; throws TryLater, or Refused. */
  async open(operationName: string, variables: object, deadline: Deadline): Promise<() => Promise<Chunk>> {
    const response = await this.#send(operationName, variables, 'text/event-stream', deadline);
    if (!response.ok) throw failureOf(response, await reached(response.text(), deadline));
    if (!response.body || response.headers.get('content-type')?.startsWith('text/event-stream') !== true)
      throw new Refused(`${this.#url} did not answer with an event stream.`, null);
    const reader = response.body.getReader();
    return () => reached(reader.read(), deadline);
  }

  #send(operationName: string, variables: object, accept: string, deadline: Deadline): Promise<Response> {
    const body = JSON.stringify({ query: document, operationName, variables });
    const headers = { ...this.#headers, accept };
    return reached(fetch(this.#url, { method: 'POST', headers, body, signal: deadline.signal }), deadline);
  }
}

export interface Chunk {
  done: boolean;
  value?: Uint8Array | undefined;
}

/** Whatever keeps bytes from coming may pass. */
async function reached<Value>(coming: Promise<Value>, deadline: Deadline): Promise<Value> {
  try {
    return await coming;
  } catch (error) {
    const why = deadline.passed ? 'Nothing came for too long' : 'The server cannot be reached';
    throw new TryLater(`${why}: ${messageOf(error)}`, { cause: error });
  }
}

/** Of fetch, which tells only in the cause what went wrong. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message !== '' ? cause.message : error.message;
}
