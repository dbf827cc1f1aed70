import type { IncomingMessage } from 'node:http';
import { limits } from '../domain/limits.ts';
import { HttpError } from './http-error.ts';

/** Reads a JSON body, at most 8 MiB of it: the limit holds while reading, not after. */
export async function readJsonBody(request: IncomingMessage): Promise<{ body: unknown; bytes: number }> {
  const mediaType = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  if (mediaType !== 'application/json') {
    throw new HttpError(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send GraphQL over POST as application/json.');
  }
  if (Number(request.headers['content-length'] ?? 0) > limits.resultBodyBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > limits.resultBodyBytes) throw tooLarge();
    chunks.push(chunk);
  }
  try {
    return {
      body: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))),
      bytes,
    };
  } catch {
    throw new HttpError(400, 'BAD_REQUEST', 'The request body is not valid JSON in UTF-8.');
  }
}

const tooLarge = (): HttpError =>
  new HttpError(413, 'BODY_TOO_LARGE', `The request body is larger than ${limits.resultBodyBytes} bytes.`);
