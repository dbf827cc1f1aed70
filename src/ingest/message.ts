import { createHash } from 'node:crypto';
import { Match, type MsgHdrs } from '@nats-io/transport-node';
import { toPublicId } from '../domain/ids.ts';
import { isJsonObject, repairText } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { isInvalidInput, parsed } from '../domain/problems.ts';
import { cutBytes, parseName } from '../domain/text.ts';
import { parseTraceparent } from '../domain/trace-context.ts';
import type { RejectedEvent } from '../intake/insert-rejected.sql.ts';
import { parseMessage } from '../intake/parse-message.ts';
import type { StreamMessage } from './types.ts';

/** Of a rejected message, so much is kept. */
const rawBytes = 64 * 1024;

/** What the broker says of a delivery in the subject that it is acknowledged on. */
export interface Delivery {
  /** 1 is the first. */
  count: number;
  sequence: number;
  storedAt: bigint;
}

/** Null: it is no delivery of a stream. */
export function parseAckSubject(subject: string): Delivery | null {
  const tokens = subject.split('.');
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK') return null;
  // Newer servers put domain and account before the stream, and may add tokens at the end.
  const [count, sequence, , storedAt] = tokens.slice(tokens.length > 9 ? 6 : 4);
  if (![count, sequence, storedAt].every((token) => /^\d+$/.test(token ?? ''))) return null;
  return { count: Number(count), sequence: Number(sequence), storedAt: BigInt(storedAt ?? 0) };
}

/** Nanoseconds since 1970 of a time as the broker writes it, such as 2026-01-31T10:00:00.123456789Z. */
export function parseNanoseconds(time: string): bigint {
  const [seconds = '', fraction = ''] = time.replace('Z', '').split('.');
  return BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}

/** What a message says of its headers. Reading them throws for some that a producer can send and the broker stores. */
export function headersOf(
  read: () => MsgHdrs | undefined,
): Pick<StreamMessage, 'header' | 'hasBrokenHeaders'> {
  let headers: MsgHdrs | undefined;
  try {
    headers = read();
  } catch {
    return { header: () => null, hasBrokenHeaders: true };
  }
  const header = (name: string): string | null =>
    headers?.has(name, Match.IgnoreCase) ? headers.get(name, Match.IgnoreCase) : null;
  return { header, hasBrokenHeaders: false };
}

/**
 * The key of a message that names none. A stream that is made again, or that lost its end in a crash, gives a number
 * twice; never with the same time.
 */
const numberKey = (stream: string, { sequence, storedAt }: StreamMessage): string =>
  `${stream}:${sequence}:${storedAt}`;

/** The key of a message whose payload names none: what its producer gave it, else its number. */
export const fallbackKey = (stream: string, message: StreamMessage): string =>
  message.header('Nats-Msg-Id') ?? numberKey(stream, message);

/** Made from the message, so that each delivery of it has the same; begins with its time like any id. */
function rejectedId(stream: string, message: StreamMessage): string {
  const ms = (message.storedAt / 1_000_000n).toString(16).padStart(12, '0').slice(-12);
  const hash = createHash('sha256').update(numberKey(stream, message)).digest('hex');
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`;
}

export type RejectionCode = 'NOT_JSON' | 'TOO_LARGE' | 'INVALID_ENVELOPE' | 'CONFLICT' | 'FAILED';

/** The names that a message has in its payload, where they are some. */
function namesIn(message: StreamMessage): (field: string) => string | null {
  const read = parsed(() => ({ payload: parseMessage(message.data) }));
  return (field) => {
    if (isInvalidInput(read) || !isJsonObject(read.payload)) return null;
    const value = read.payload[field];
    const text = typeof value === 'string' ? parsed(() => parseName(value, field)) : null;
    return isInvalidInput(text) ? null : text;
  };
}

/** Null: it names none, and gets one when it is stored. */
export const namedCorrelation = (message: StreamMessage): string | null => namesIn(message)('correlation_id');

/** A message as it is kept when it cannot be taken in. */
export function rejectedEvent(
  stream: string,
  message: StreamMessage,
  { code, message: reason }: { code: RejectionCode; message: string },
): RejectedEvent {
  const id = rejectedId(stream, message);
  const name = namesIn(message);
  // A name that is one byte too long stays wrong.
  return {
    id,
    topic: cutBytes(repairText(message.subject), limits.nameBytes + 1),

    idempotencyKey:
      name('idempotency_key') ?? cutBytes(repairText(fallbackKey(stream, message)), limits.nameBytes + 1),
    correlationId: name('correlation_id') ?? toPublicId('evt', id),
    traceContext: parseTraceparent(message.header('traceparent')),
    code,
    message: reason,
    raw: Buffer.from(message.data.subarray(0, rawBytes)),
    bytes: message.data.length,
  };
}
