import { hash } from 'node:crypto';
import type { Chunks, Flaw, Piece } from './pieces.ts';
import { readJson } from './read-json.ts';
import { readLines } from './read-lines.ts';

export type Format = 'json' | 'jsonl';

export interface Source {
  /** As it was given; what people are told, and a part of the keys. */
  name: string;
  format: Format;
  /** Null: nobody knows. */
  bytes: number | null;
  open: () => Chunks;
}

/** An event as it is sent: its place in a list of inputs, in JSON. */
export interface OutgoingEvent {
  source: string;
  line: number;
  end: number;
  json: string;
}
export interface RefusedPiece {
  source: string;
  line: number;
  end: number;
  message: string;
}

export interface EventOptions {
  topic: string;
  /** A part of the keys; another one publishes the same again. */
  batch: string;
  /** What an input may take of a request. */
  maxBytes: number;
}

/** The events of a source, in its order, and what cannot be one. */
export async function* readEvents(
  { name, format, open }: Source,
  options: EventOptions,
): AsyncGenerator<OutgoingEvent | RefusedPiece> {
  const read = format === 'json' ? readJson : readLines;
  for await (const piece of read(open(), options.maxBytes)) {
    const { line, end } = piece;
    const found = piece.kind === 'flaw' ? { message: piece.message } : eventOf(name, piece, options);
    yield { source: name, line, end, ...found };
  }
}

function eventOf(
  source: string,
  { place, text }: Piece,
  { topic, batch, maxBytes }: EventOptions,
): { json: string } | Pick<Flaw, 'message'> {
  let payload: unknown;
  try {
    payload = JSON.parse(text);
  } catch (error) {
    return { message: `is no JSON: ${error instanceof SyntaxError ? error.message : String(error)}.` };
  }
  if (payload === null) return { message: 'is null, which is no payload.' };
  const key = hasKey(payload) ? null : derivedKey(batch, source, place, text);
  const envelope = JSON.stringify({ topic, idempotencyKey: key }).slice(0, -1);
  // The text as it came: numbers would not survive being read and written.
  const json = `${envelope},"payload":${text}}`;
  const bytes = Buffer.byteLength(json);
  return bytes > maxBytes ? { message: `has ${bytes} bytes, and ${maxBytes} fit into a request.` } : { json };
}

/** The server takes the key of a payload, or refuses it. */
const hasKey = (payload: unknown): boolean =>
  typeof payload === 'object' &&
  payload !== null &&
  'idempotency_key' in payload &&
  payload.idempotency_key !== null;

/** The same text at the same place of the same source is the same event, whenever it is read again. */
function derivedKey(batch: string, source: string, place: number, text: string): string {
  return `publish:${hash('sha256', JSON.stringify([batch, source, place, text]), 'hex').slice(0, 48)}`;
}

/** Events that are sent together: as many as there are, up to a count and a size, within a time. */
export async function* inBatches(
  found: AsyncIterable<OutgoingEvent | RefusedPiece>,
  { maxEvents, maxBytes, waitMs }: { maxEvents: number; maxBytes: number; waitMs: number },
): AsyncGenerator<(OutgoingEvent | RefusedPiece)[]> {
  const iterator = found[Symbol.asyncIterator]();
  let batch: (OutgoingEvent | RefusedPiece)[] = [];
  let bytes = 0;
  let next = iterator.next();
  for (;;) {
    // What comes slowly is sent all the same.
    const result = batch.length === 0 ? await next : await within(next, waitMs);
    if (result?.done) break;
    const size = result && 'json' in result.value ? Buffer.byteLength(result.value.json) + 1 : 0;
    if (batch.length > 0 && (!result || batch.length >= maxEvents || bytes + size > maxBytes)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    if (!result) continue;
    batch.push(result.value);
    bytes += size;
    next = iterator.next();
  }
  if (batch.length > 0) yield batch;
}

/** Null when it takes longer. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
