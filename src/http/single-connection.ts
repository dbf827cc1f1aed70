import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHandler, type Handler } from 'graphql-sse';
import type { Authority, Viewer } from '../domain/credential.ts';
import { limits } from '../domain/limits.ts';
import { silentMs, watchAuthority } from '../graphql/authority-watch.ts';
import type { OpenStreams } from './event-stream.ts';
import { EventWriter } from './event-writer.ts';
import { HttpError } from './http-error.ts';
import type { OperationRequest } from './operation-request.ts';
import type { OperationResults } from './operation-results.ts';
import {
  acceptsEvents,
  type Call,
  operationIdOf,
  ownSseRequest,
  send,
  tokenOf,
  toSseRequest,
} from './sse-requests.ts';
import type { StreamCap } from './stream-cap.ts';
import { UnsentMessages } from './unsent-messages.ts';

export interface SingleConnectionOptions {
  streams: StreamCap;
  openStreams: OpenStreams;
  reservationSeconds: number;
}

/** Reads the operation of a request whose results go to a stream that is there already. */
export type PrepareOperation = () => Promise<{
  request: OperationRequest;
  start: () => Promise<OperationResults>;
}>;

/** A stream from the request that reserves it to the end of the connection that it became. */
interface Stream {
  token: string;
  owner: string;
  tokenId: string | null;
  unsent: UnsentMessages;
  operations: number;
  /** Ends the reservation, of its own accord when nobody came for it. */
  expire: () => void;
  expiry: NodeJS.Timeout | null;
  free: () => void;
}

/**
 * Single-connection mode of the GraphQL-over-SSE protocol: one stream carries the results of many operations, which
 * come by requests of their own. graphql-sse keeps the protocol; here is what it leaves open. Tokens are made by the
 * server and belong to the credential that reserved the stream; reservations expire; no more is produced than is read;
 * results never throw (see OperationResults).
 */
export class SingleConnections {
  readonly #options: SingleConnectionOptions;
  readonly #streams = new Map<string, Stream>();
  readonly #handler: Handler<undefined, Call>;

  constructor(options: SingleConnectionOptions) {
    this.#options = options;
    this.#handler = createHandler<undefined, Call>({
      authenticate: ({ context }) => context.token,
      onSubscribe: ({ context }) => context.start?.() as Promise<AsyncGenerator<never>>,
    });
  }

  /** Those that are reserved or open. */
  get size(): number {
    return this.#streams.size;
  }

  /** Whether a request belongs to a single connection; else it is an operation of its own. */
  static isMeant(request: IncomingMessage): boolean {
    return (
      request.method === 'PUT' ||
      request.method === 'DELETE' ||
      tokenOf(request) !== null ||
      !acceptsEvents(request)
    );
  }

  async answer(
    request: IncomingMessage,
    response: ServerResponse,
    authority: Authority,
    prepare: PrepareOperation,
  ): Promise<void> {
    const { viewer } = authority;
    if (request.method === 'PUT') return this.#reserve(request, response, viewer);
    const stream = this.#streams.get(tokenOf(request) ?? '');
    // A token that somebody else got hold of is none.
    if (!stream || stream.owner !== ownerOf(viewer)) {
      throw new HttpError(404, 'NOT_FOUND', 'There is no such stream: reserve one with PUT.');
    }
    if (request.method === 'DELETE') {
      const call = { token: stream.token, start: null };
      return send(response, await this.#handler(toSseRequest(request, call)));
    }
    if (acceptsEvents(request)) return this.#open(request, response, stream, authority);
    return this.#execute(request, response, stream, prepare);
  }

  async #reserve(request: IncomingMessage, response: ServerResponse, viewer: Viewer): Promise<void> {
    if (this.#streams.size >= limits.reservedStreams) {
      const message = `There are ${limits.reservedStreams} streams already; at most as many are kept.`;
      throw tooManyStreams(message, limits.reservedStreams, this.#options.reservationSeconds);
    }
    const stream: Stream = {
      token: randomBytes(24).toString('base64url'),
      owner: ownerOf(viewer),
      tokenId: viewer.tokenId,
      unsent: new UnsentMessages(limits.unsentMessages),
      operations: 0,
      expire: () => void this.#expire(stream),
      expiry: null,
      free: this.#options.streams.take(viewer.tokenId),
    };
    const answer = await this.#handler(toSseRequest(request, { token: stream.token, start: null }));
    if (answer[1].status !== 201) {
      stream.free();
      return send(response, answer);
    }
    this.#streams.set(stream.token, stream);
    stream.expiry = setTimeout(stream.expire, this.#options.reservationSeconds * 1000);
    this.#options.openStreams.add(stream.expire);
    send(response, answer);
  }

  /** Nobody came for it. The protocol ends streams that are open, so it is opened for nobody. */
  async #expire(stream: Stream): Promise<void> {
    this.#forget(stream);
    const [body] = await this.#handler(ownSseRequest(stream.token, 'GET'));
    if (body && typeof body !== 'string') await body.return(undefined);
  }

  /** It is a reservation no more: it was opened, or expired. */
  #settle(stream: Stream): void {
    if (stream.expiry) clearTimeout(stream.expiry);
    stream.expiry = null;
    this.#options.openStreams.delete(stream.expire);
  }

  #forget(stream: Stream): void {
    this.#settle(stream);
    this.#streams.delete(stream.token);
    stream.unsent.close();
    stream.free();
  }

  async #open(
    request: IncomingMessage,
    response: ServerResponse,
    stream: Stream,
    authority: Authority,
  ): Promise<void> {
    const answer = await this.#handler(toSseRequest(request, { token: stream.token, start: null }));
    const [messages] = answer;
    if (!messages || typeof messages === 'string') return send(response, answer);
    this.#settle(stream);
    const { openStreams } = this.#options;
    const stop = (): void => {
      stream.unsent.close();
      void messages.return(undefined);
    };
    response.on('close', stop);
    openStreams.add(stop);
    // What its operations tell ends with the credential on its own; a connection without any does not.
    const unwatch = watchAuthority(authority, silentMs, stop);
    if (response.destroyed) stop();
    const writer = new EventWriter(response);
    writer.open();
    try {
      for await (const message of messages) {
        await writer.write(message);
        if (message.startsWith('event: next')) stream.unsent.taken();
      }
    } finally {
      unwatch();
      openStreams.delete(stop);
      this.#forget(stream);
      stop();
      writer.end();
    }
  }

  async #execute(
    request: IncomingMessage,
    response: ServerResponse,
    stream: Stream,
    prepare: PrepareOperation,
  ): Promise<void> {
    if (stream.unsent.isFull) {
      const message = `The stream has ${limits.unsentMessages} messages that were not read: it takes no other operation.`;
      throw new HttpError(429, 'SLOW_CONSUMER', message, {
        extensions: { limit: limits.unsentMessages },
        retryAfterSeconds: 1,
      });
    }
    const release = this.#takePlace(stream);
    try {
      const { request: operation, start } = await prepare();
      let paced = null as AsyncGenerator<unknown> | null;
      // Not before its id is known to be free: what is refused is not executed.
      const begin = async (): Promise<AsyncGenerator<unknown>> => {
        try {
          paced = stream.unsent.pace(await start(), release);
          return paced;
        } catch (error) {
          await this.#handler(ownSseRequest(stream.token, 'DELETE', operationIdOf(operation)));
          throw error;
        }
      };
      const call = { token: stream.token, start: begin };
      const answer = await this.#handler(toSseRequest(request, call, operation));
      // A stream that ended meanwhile ends no operations any more.
      if (answer[1].status !== 202 || !this.#streams.has(stream.token)) await paced?.return(undefined);
      send(response, answer);
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Of an operation: it counts as a stream of its token. */
  #takePlace(stream: Stream): () => void {
    if (stream.operations >= limits.operationsOfStream) {
      const message = `The stream has ${limits.operationsOfStream} operations already; at most as many are allowed.`;
      throw tooManyStreams(message, limits.operationsOfStream, 1);
    }
    const free = this.#options.streams.take(stream.tokenId);
    stream.operations++;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      stream.operations--;
      free();
    };
  }
}

const tooManyStreams = (message: string, limit: number, retryAfterSeconds: number): HttpError =>
  new HttpError(429, 'TOO_MANY_STREAMS', message, { extensions: { limit }, retryAfterSeconds });

const ownerOf = ({ tokenId, name }: Viewer): string => `${tokenId ?? ''} ${name}`;
