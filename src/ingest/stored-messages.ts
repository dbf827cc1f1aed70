import type { JetStreamManager, StoredMsg } from '@nats-io/jetstream';
import { headersOf, parseNanoseconds } from './message.ts';
import type { Range } from './ranges.ts';
import type { StreamMessage } from './types.ts';

/** The first message that a stream has from a number on; null: there is none. */
export async function readMessage(
  jsm: JetStreamManager,
  stream: string,
  from: number,
): Promise<StreamMessage | null> {
  const query = { seq: from, next_by_subj: '>' };
  const stored = await jsm.streams.getMessage(stream, query);
  return stored && messageOf(stored);
}

const messageOf = (stored: StoredMsg): StreamMessage => ({
  subject: stored.subject,
  data: stored.data,
  ...headersOf(() => stored.header),
  sequence: stored.seq,
  storedAt: parseNanoseconds(stored.timestamp),
});

export interface ReadRanges {
  messages: StreamMessage[];
  /** The stream does not have these any more. */
  gone: Range[];
}

/** Reads what a stream has of these ranges, in order, until so many requests were made, or the signal aborts. */
export async function readRanges(
  read: (from: number) => Promise<StreamMessage | null>,
  ranges: readonly Range[],
  maxRequests: number,
  signal: AbortSignal,
): Promise<ReadRanges> {
  const messages: StreamMessage[] = [];
  const gone: Range[] = [];
  let requests = 0;
  // The first message from some number on: it tells of all numbers up to its own.
  let next: StreamMessage | null | undefined;
  for (const { from, to } of ranges) {
    for (let at = from; at <= to; ) {
      if (next === undefined || (next !== null && next.sequence < at)) {
        if (requests === maxRequests || signal.aborted) return { messages, gone };
        requests++;
        next = await read(at);
      }
      const end = Math.min(next?.sequence ?? Number.POSITIVE_INFINITY, to + 1);
      if (end > at) gone.push({ from: at, to: end - 1 });
      if (next && end <= to) messages.push(next);
      at = end + 1;
    }
  }
  return { messages, gone };
}
