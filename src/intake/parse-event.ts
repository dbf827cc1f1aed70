import { digest, hashKey } from '../domain/digest.ts';
import { checkJson, isJsonObject, type Json } from '../domain/json.ts';
import { InvalidInputError } from '../domain/problems.ts';
import { parseLabels, parseName, parseOptionalName } from '../domain/text.ts';
import { topicFault } from '../domain/topic.ts';
import type { IdempotencyKey } from './parse-launch.ts';
import type { PublishEventInput, ReceivedEventInput } from './types.ts';

/** An event whose envelope is valid; what its payload means is up to the routes. */
export interface IncomingEvent {
  topic: string;
  source: 'GRAPHQL' | 'NATS';
  payload: Json;
  key: IdempotencyKey | null;
  correlationId: string | null;
  customer: string | null;
  labels: Record<string, string>;
}

/** Checks an event's envelope; throws InvalidInputError. */
export function parseEvent(input: PublishEventInput): IncomingEvent {
  const { event, payloadKey } = parseEnvelope(input);
  const given = parseOptionalName(input.idempotencyKey, 'idempotencyKey');
  return { ...event, source: 'GRAPHQL', key: keyOf(event, given ?? payloadKey()) };
}

/** The same for one that a broker delivered: what the payload names comes first, and a key there always is. */
export function parseReceivedEvent({ fallbackKey, ...input }: ReceivedEventInput): IncomingEvent {
  const { event, payloadKey } = parseEnvelope(input);
  return {
    ...event,
    source: 'NATS',
    key: keyOf(event, payloadKey() ?? parseName(fallbackKey, 'Nats-Msg-Id')),
  };
}

type Envelope = Omit<IncomingEvent, 'key' | 'source'>;

function parseEnvelope(input: PublishEventInput): { event: Envelope; payloadKey: () => string | null } {
  const topic = parseName(input.topic, 'topic');
  const fault = topicFault(topic, false);
  if (fault) throw new InvalidInputError('topic', `topic ${fault}.`);
  const payload = checkJson(input.payload, 'payload').value;
  const event = {
    topic,
    payload,
    correlationId:
      parseOptionalName(input.correlationId, 'correlationId') ?? nameFromPayload(payload, 'correlation_id'),
    customer: parseOptionalName(input.customer, 'customer'),
    labels: parseLabels(input.labels, 'labels'),
  };
  return { event, payloadKey: () => nameFromPayload(payload, 'idempotency_key') };
}

/** The digest is of what the event says and not of how it came: the same by both ways is one event. */
const keyOf = (event: Envelope, text: string | null): IdempotencyKey | null =>
  text === null
    ? null
    : { kind: 'event', scope: event.topic, text, hash: hashKey(text), digest: digest(event) };

function nameFromPayload(payload: Json, field: string): string | null {
  if (!isJsonObject(payload)) return null;
  const value = payload[field];
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string')
    throw new InvalidInputError(`payload.${field}`, `payload.${field} must be a string.`);
  return parseName(value, `payload.${field}`);
}
