import type { Json, JsonObject } from '../domain/json.ts';

/** A field of the message, else the same of its event: what a producer put on the envelope holds as well. */
const orOfEvent = (field: string, ofEvent: string): Json => ({
  $switch: {
    [`'${field}' in payload && payload.${field} != null`]: { $eval: `payload.${field}` },
    $default: { $eval: `event.${ofEvent}` },
  },
});

/** json-e: the message with its defaults; what a route adds wins over what a message claims. */
const messageConfig = (more: JsonObject = {}): Json => ({
  $merge: [
    { $eval: 'payload' },
    {
      correlation_id: orOfEvent('correlation_id', 'correlationId'),
      idempotency_key: orOfEvent('idempotency_key', 'idempotencyKey'),
      ...more,
    },
  ],
});

/** Of a route to the audit job. Tokens are booked once per event: by the audit only where no record step does it. */
export const auditConfig = (booksTokens: boolean): Json => messageConfig({ books_tokens: booksTokens });

/** Of a route to a job that makes an asset of chats. */
export const chatAssetConfig = (): Json => messageConfig();

/** Of a route to the job of an operation. */
export const eventConfig = (type: string): Json => messageConfig({ event_type: type });
