import type { Json, JsonObject } from '../domain/json.ts';

/** Of text that is a name: the database, usage and partitions take no more. */
const name = { minLength: 1, maxLength: 200 };
const optionalName = { type: ['string', 'null'], ...name };
const optionalText = { type: ['string', 'null'] };
/** The columns of tokens are 32-bit integers. */
const optionalCount = { type: ['integer', 'null'], minimum: 0, maximum: 2_147_483_647 };

const properties: JsonObject = {
  pipeline_id: { type: 'string', ...name },
  correlation_id: optionalName,
  idempotency_key: optionalName,
  model: optionalName,
  prompt: optionalText,
  response: optionalText,
  messages: { type: ['array', 'null'] },
  usage: {
    type: ['object', 'null'],
    properties: {
      prompt_tokens: optionalCount,
      completion_tokens: optionalCount,
      total_tokens: optionalCount,
      cost: { type: ['string', 'null'], pattern: '^\\d{1,12}(\\.\\d{1,12})?$' },
    },
  },
  // Milliseconds since 1970, up to the year 9999.
  requested_at: { type: ['integer', 'null'], minimum: 0, maximum: 253_402_300_799_999 },
};

const schemaOf = (required: string[], more: JsonObject = {}): Json => ({
  type: 'object',
  required: ['pipeline_id', ...required],
  properties: { ...properties, ...more },
});

/** A chat always has both sides; anything beyond the known fields is allowed and kept. */
const chat = { prompt: { type: 'string' }, response: { type: 'string' } };
export const chatSchema = schemaOf(['prompt', 'response'], chat);
export const auditSchema = schemaOf(['prompt', 'response'], { ...chat, books_tokens: { type: 'boolean' } });

/** Of one operation, so that a run of its job cannot be filed under another. */
export const operationSchema = (type: string): Json =>
  schemaOf(['event_type'], { event_type: { const: type } });

/** Of any operation: what the shared handler relies on. */
export const anyOperationSchema = schemaOf(['event_type'], { event_type: { type: 'string', ...name } });
