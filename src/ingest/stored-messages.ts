import type { JetStreamManager, StoredMsg } from '@nats-io/jetstream';
import { parseNanoseconds } from './message.ts';
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

const messageOf = ({ subject, data, header, seq, timestamp }: StoredMsg): StreamMessage => ({
  subject,
  data,
  header: (name) => (header.has(name) ? header.get(name) : null),
  sequence: seq,
  storedAt: parseNanoseconds(timestamp),
});
