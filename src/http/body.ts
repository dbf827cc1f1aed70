import type { IncomingMessage } from 'node:http';
import { limits } from '../domain/limits.ts';
import { HttpError } from './http-error.ts';

/** The memory for bodies of who shows no credential: senders that never come to an end fill this and no more. */
export class BodyRoom {
  readonly #limit: number;
  #taken = 0;

  constructor(limit: number = limits.strangersBodyBytes) {
    this.#limit = limit;
  }

  take(bytes: number): void {
    if (this.#taken + bytes > this.#limit) {
      throw new HttpError(
        429,
        'TOO_MANY_REQUESTS',
        `Requests without a credential send more than ${this.#limit} bytes at once.`,
        { retryAfterSeconds: 1, extensions: { limit: this.#limit } },
      );
    }
    this.#taken += bytes;
  }

  give(bytes: number): void {
    this.#taken -= bytes;
  }
}

/**
 * Reads a JSON body, at most 8 MiB of it: the limit holds while reading, not after. Null: the room is not limited, the
 * sender is known.
 */
export async function readJsonBody(
  request: IncomingMessage,
  room: BodyRoom | null,
): Promise<{ body: unknown; bytes: number }> {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
  if (!/^\s*application\/json\s*(;|$)/i.test(type) || !/^utf-?8$/i.test(charsetOf(type))) {
    throw notReadable('Send GraphQL over POST as application/json, in UTF-8.');
  }
  if (encoding.toLowerCase() !== 'identity') throw notReadable('Send the body without a Content-Encoding.');
  if (Number(request.headers['content-length'] ?? 0) > limits.resultBodyBytes) throw tooLarge();
  const bytes = await readBytes(request, room);
  try {
    return {
      body: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)),
      bytes: bytes.length,
    };
  } catch {
    throw new HttpError(400, 'BAD_REQUEST', 'The request body is not valid JSON in UTF-8.');
  }
}

async function readBytes(request: IncomingMessage, room: BodyRoom | null): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let taken = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > limits.resultBodyBytes) throw tooLarge();
      room?.take(chunk.length);
      taken = bytes;
      chunks.push(chunk);
    }
  } catch (error) {
    // A client that leaves while it sends is no failure of the server.
    throw request.complete || error instanceof HttpError
      ? error
      : new HttpError(400, 'BAD_REQUEST', 'The request body ended too early.');
  } finally {
    room?.give(taken);
  }
  return Buffer.concat(chunks);
}

const charsetOf = (type: string): string => /;\s*charset="?([^";\s]*)/i.exec(type)?.[1] ?? 'utf-8';

const notReadable = (message: string): HttpError => new HttpError(415, 'UNSUPPORTED_MEDIA_TYPE', message);

const tooLarge = (): HttpError =>
  new HttpError(413, 'BODY_TOO_LARGE', `The request body is larger than ${limits.resultBodyBytes} bytes.`, {
    extensions: { limit: limits.resultBodyBytes },
  });
