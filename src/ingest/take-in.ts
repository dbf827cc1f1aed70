import { statement, transaction } from '../db/transaction.ts';
import { createBreather } from '../domain/breather.ts';
import { failureWithStack } from '../domain/failure.ts';
import { toPublicId } from '../domain/ids.ts';
import { limits } from '../domain/limits.ts';
import { invalidInput, isInvalidInput, parsed } from '../domain/problems.ts';
import { isUnavailable } from '../domain/unavailable.ts';
import { insertRejected, type RejectedEvent } from '../intake/insert-rejected.sql.ts';
import { parseMessage } from '../intake/parse-message.ts';
import type { PublishEventOutcome } from '../intake/types.ts';
import { insertIncidents } from './incidents.sql.ts';
import { fallbackKey, namedCorrelation, type RejectionCode, rejectedEvent } from './message.ts';
import { markHandled } from './positions.sql.ts';
import { rangesOf } from './ranges.ts';
import type { IngestContext, Source, StreamMessage } from './types.ts';

/** What became of a message. AGAIN: nothing, and it has to come again. */
export type TakenIn = { kind: 'STORED' | 'REJECTED'; eventId: string } | { kind: 'AGAIN' };

/** Another replica has found that the stream was made again: its numbers mean other messages by now. */
export class OtherStream extends Error {
  constructor() {
    super('the stream is another one by now');
  }
}

interface Rejection {
  message: StreamMessage;
  code: RejectionCode;
  reason: string;
}

type Outcome =
  | PublishEventOutcome
  | { kind: 'Unreadable'; message: string }
  | { kind: 'Failed'; error: unknown };

/**
 * Takes messages in by the door that all events come in by, and returns once everything that it says is committed. What
 * cannot be taken in is kept as a rejected event with an incident. `isLast` says of a message that it does not come again:
 * then it is kept even when it fails for a reason of ours.
 */
export async function takeIn(
  context: IngestContext,
  source: Source,
  streamCreated: string,
  messages: readonly StreamMessage[],
  isLast: (message: StreamMessage) => boolean,
): Promise<TakenIn[]> {
  const breathe = createBreather();
  const received: Promise<Outcome>[] = [];
  for (const message of messages) {
    await breathe();
    received.push(receive(context, source, message));
  }
  const outcomes = await Promise.all(received);
  await repeatSlow(context, source, messages, outcomes);
  const rejections: Rejection[] = [];
  const taken = new Map<StreamMessage, TakenIn>();
  for (const [i, message] of messages.entries()) {
    const outcome = outcomes[i] as Outcome;
    if (outcome.kind === 'PublishEventSuccess')
      taken.set(message, { kind: 'STORED', eventId: outcome.eventId });
    const rejection = rejectionOf(outcome, message, isLast);
    if (rejection) rejections.push({ message, ...rejection });
    if (outcome.kind === 'Failed') {
      const correlationId = namedCorrelation(message) ?? undefined;
      const fields = { ...placeOf(source, message), correlationId, error: failureWithStack(outcome.error) };
      context.log.error(fields, 'a message could not be taken in');
    }
  }
  for (const [message, eventId] of await reject(context, source, rejections))
    taken.set(message, { kind: 'REJECTED', eventId });
  const handled = rangesOf([...taken.keys()].map(({ sequence }) => sequence));
  if (!(await transaction(context.db, (tx) => markHandled(tx, source, streamCreated, handled))))
    throw new OtherStream();
  return messages.map((message) => taken.get(message) ?? { kind: 'AGAIN' });
}

/** Where a message is found, in a line of the log. */
const placeOf = ({ stream }: Source, { sequence, subject }: StreamMessage): object => ({
  stage: 'intake',
  stream,
  sequence,
  topic: subject,
});

/** Never rejects: what one message meets is not to hold up those that came with it. */
async function receive(context: IngestContext, source: Source, message: StreamMessage): Promise<Outcome> {
  try {
    return await receiveEvent(context, source, message);
  } catch (error) {
    return { kind: 'Failed', error };
  }
}

async function receiveEvent(
  { intake }: IngestContext,
  { stream }: Source,
  message: StreamMessage,
): Promise<Outcome> {
  // In an object of its own: a message can look like a problem.
  const read = parsed(() => ({ payload: parseMessage(message.data) }));
  if (isInvalidInput(read)) return { kind: 'Unreadable', message: read.message };
  if (message.hasBrokenHeaders)
    return invalidInput(
      null,
      'The headers of the message are none: a name or a value has forbidden characters.',
    );
  const traceparent = message.header('traceparent');
  const input = { topic: message.subject, ...read, fallbackKey: fallbackKey(stream, message), traceparent };
  return intake.receiveEvent(input);
}

/**
 * Events that are stored together share the time for templates and schemas. One for which none was left is tried by
 * itself: were it delivered again, it would meet the others again.
 */
async function repeatSlow(
  context: IngestContext,
  source: Source,
  messages: readonly StreamMessage[],
  outcomes: Outcome[],
): Promise<void> {
  if (outcomes.every(({ kind }) => kind !== 'Unavailable') || !(await databaseAnswers(context))) return;
  for (const [i, message] of messages.entries())
    if (outcomes[i]?.kind === 'Unavailable') outcomes[i] = await receive(context, source, message);
}

/** By a lock, which one that can only be read refuses. */
export async function databaseAnswers({ db }: Pick<IngestContext, 'db'>): Promise<boolean> {
  try {
    await statement(db, { text: 'select from runplane.installation for key share' });
    return true;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return false;
  }
}

function rejectionOf(
  outcome: Outcome,
  message: StreamMessage,
  isLast: (message: StreamMessage) => boolean,
): Omit<Rejection, 'message'> | null {
  switch (outcome.kind) {
    case 'Unreadable':
      return {
        code: message.data.length > limits.jsonBytes ? 'TOO_LARGE' : 'NOT_JSON',
        reason: outcome.message,
      };
    case 'InvalidInput':
      return { code: 'INVALID_ENVELOPE', reason: outcome.message };
    case 'IdempotencyConflict':
      return { code: 'CONFLICT', reason: outcome.message };
    case 'Failed':
      return isLast(message)
        ? { code: 'FAILED', reason: 'The server failed to take it in; its log says why. It can be replayed.' }
        : null;
    case 'PublishEventSuccess':
    case 'Unavailable':
      return null;
  }
}

/** Keeps them, each with an incident, in one transaction; a message that was kept before is left as it is. */
async function reject(
  { db, log }: IngestContext,
  source: Source,
  rejections: readonly Rejection[],
): Promise<[StreamMessage, string][]> {
  if (rejections.length === 0) return [];
  const breathe = createBreather();
  const rejected = new Map<string, { event: RejectedEvent; message: StreamMessage }>();
  const ids: [StreamMessage, string][] = [];
  for (const { message, code, reason } of rejections) {
    await breathe();
    const event = rejectedEvent(source.stream, message, { code, message: reason });
    rejected.set(event.id, { event, message });
    ids.push([message, event.id]);
  }
  const kept = await transaction(db, async (tx) => {
    const inserted = await insertRejected(
      tx,
      [...rejected.values()].map(({ event }) => event),
    );
    const fresh = [...inserted].flatMap((id) => rejected.get(id) ?? []);
    const incidents = fresh.map(({ event: { id, code }, message: { sequence } }) => ({
      kind: code === 'CONFLICT' ? ('CONFLICT' as const) : ('POISON' as const),
      from: sequence,
      to: sequence,
      detail: `${code}: it is kept as a rejected event, which says why.`,
      eventId: id,
    }));
    await insertIncidents(tx, source, incidents);
    return fresh;
  });
  for (const { event, message } of kept) {
    const { correlationId, code } = event;
    const fields = { ...placeOf(source, message), correlationId, eventId: toPublicId('evt', event.id), code };
    log.warn(fields, 'a message is no event, and is kept as a rejected one');
  }
  return ids;
}
