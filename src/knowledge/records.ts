import { createHash } from 'node:crypto';
import type { InlineResult, InlineTask } from '../dispatch/handlers.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { type Message, originOf, without } from './message.ts';

/** Rows as they pass from a record step to its dataset step: fields are the columns of the table. */
export interface ChatPairRecord extends JsonObject {
  pair_id: string;
  correlation_id: string;
  pipeline_id: string;
  llm_model: string | null;
  prompt: string | null;
  response: string | null;
  prompt_tokens: number | null;
  completion_tokens: number | null;
  total_tokens: number | null;
  payload_json: Json;
}
export interface EventRecord extends JsonObject {
  event_id: string;
  event_type: string;
  correlation_id: string;
  pipeline_id: string;
  llm_model: string | null;
  payload_json: Json;
}
export interface AuditRecord extends JsonObject {
  message_key: string;
  pipeline_id: string;
  correlation_id: string;
  idempotency_key: string | null;
  model: string | null;
  prompt: string | null;
  response: string | null;
  payload_json: Json;
}

const id = (...parts: string[]): string =>
  createHash('sha256').update(parts.join(':')).digest('hex').slice(0, 32);

// Fields that are kept in columns, beside what routes add; the rest of a message goes to payload_json.
const namesOfMessage = ['pipeline_id', 'correlation_id', 'idempotency_key', 'model'];
const auditColumns = [...namesOfMessage, 'prompt', 'response', 'books_tokens'];
const chatPairColumns = [...namesOfMessage, 'prompt', 'response', 'usage', 'payload_json'];
const eventColumns = [...namesOfMessage, 'event_type', 'payload_json'];

export const auditRecord = (message: Message): AuditRecord => ({
  message_key: message.identity,
  pipeline_id: message.pipelineId,
  correlation_id: message.correlationId,
  idempotency_key: message.key,
  model: message.model,
  prompt: message.prompt,
  response: message.response,
  payload_json: without(message, auditColumns),
});

export const chatPairRecord = (message: Message): ChatPairRecord => ({
  pair_id: id('pair', message.correlationId, message.identity),
  correlation_id: message.correlationId,
  pipeline_id: message.pipelineId,
  llm_model: message.model,
  prompt: message.prompt,
  response: message.response,
  prompt_tokens: message.tokens.prompt,
  completion_tokens: message.tokens.completion,
  total_tokens: message.tokens.total,
  payload_json: message.payload ?? without(message, chatPairColumns),
});

/** Without a key there is one row of an operation for each correlation id. */
export const eventRecord = (message: Message, type: string): EventRecord => ({
  event_id:
    message.key === null ? id(type, message.correlationId) : id(type, message.correlationId, message.key),
  event_type: type,
  correlation_id: message.correlationId,
  pipeline_id: message.pipelineId,
  llm_model: message.model,
  payload_json: message.payload ?? without(message, eventColumns),
});

/** What the message's tokens are booked as; nothing for a message that names none. */
export function usageOf(message: Message, task: InlineTask): NonNullable<InlineResult['usage']> {
  const { tokens, cost } = message;
  if (tokens.total === null && cost === null) return [];
  return [
    {
      model: message.model,
      inputTokens: tokens.prompt,
      outputTokens: tokens.completion,
      cost,
      responseId: originOf(task),
      at: message.requestedAt,
    },
  ];
}
