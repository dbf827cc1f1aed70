import { digest, hashKey } from '../domain/digest.ts';
import { checkJson, isJsonObject, type Json } from '../domain/json.ts';
import { InvalidInputError } from '../domain/problems.ts';
import { parseLabels, parseName, parseOptionalName } from '../domain/text.ts';
import { topicFault } from '../domain/topic.ts';
import type { IdempotencyKey } from './parse-launch.ts';
import type { PublishEventInput } from './types.ts';

/** An event whose envelope is valid; what its payload means is up to the routes. */
export interface IncomingEvent {
  topic: string;
  payload: Json;
  key: IdempotencyKey | null;
  correlationId: string | null;
  customer: string | null;
  labels: Record<string, string>;
}

/** Checks an event's envelope; throws InvalidInputError. */
export function parseEvent(input: PublishEventInput): IncomingEvent {
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
  const text =
    parseOptionalName(input.idempotencyKey, 'idempotencyKey') ?? nameFromPayload(payload, 'idempotency_key');
  const key: IdempotencyKey | null =
    text === null ? null : { kind: 'event', scope: topic, text, hash: hashKey(text), digest: digest(event) };
  return { ...event, key };
}

function nameFromPayload(payload: Json, field: string): string | null {
  if (!isJsonObject(payload)) return null;
  const value = payload[field];
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string')
    throw new InvalidInputError(`payload.${field}`, `payload.${field} must be a string.`);
  return parseName(value, `payload.${field}`);
}
