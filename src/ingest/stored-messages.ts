import type { JetStreamManager, StoredMsg } from '@nats-io/jetstream';
import { headersOf, parseNanoseconds } from './message.ts';
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
