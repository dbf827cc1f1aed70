import { sql } from 'drizzle-orm';
import { bigint, check, index, integer, jsonb, text } from 'drizzle-orm/pg-core';
import { at, runplane } from './types.ts';

const identity = () => bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity();
const createdAt = () => at('created_at').notNull().default(sql`runplane.clock()`);

/** Audit trail of chats: one row a message. */
export const knowledgeChatAudit = runplane.table(
  'knowledge_chat_audit',
  {
    id: identity(),
    /** The message's key, else the event's id. */
    messageKey: text('message_key').notNull().unique(),
    pipelineId: text('pipeline_id').notNull(),
    correlationId: text('correlation_id'),
    idempotencyKey: text('idempotency_key'),
    model: text('model'),
    prompt: text('prompt'),
    response: text('response'),
    payloadJson: jsonb('payload_json').notNull().default({}),
    createdAt: createdAt(),
  },
  (t) => [index('knowledge_chat_audit_by_correlation').on(t.correlationId)],
);

/** Prompt and response pairs, the dataset made from chats. */
export const knowledgeChatPairs = runplane.table(
  'knowledge_chat_pairs',
  {
    id: identity(),
    pairId: text('pair_id').notNull().unique(),
    correlationId: text('correlation_id'),
    pipelineId: text('pipeline_id').notNull(),
    llmModel: text('llm_model'),
    prompt: text('prompt'),
    response: text('response'),
    promptTokens: integer('prompt_tokens'),
    completionTokens: integer('completion_tokens'),
    totalTokens: integer('total_tokens'),
    payloadJson: jsonb('payload_json').notNull().default({}),
    createdAt: createdAt(),
  },
  (t) => [index('knowledge_chat_pairs_by_correlation').on(t.correlationId)],
);

/** Embedding, retrieve and compose operations. */
export const knowledgeEvents = runplane.table(
  'knowledge_events',
  {
    id: identity(),
    eventId: text('event_id').notNull().unique(),
    eventType: text('event_type').notNull(),
    correlationId: text('correlation_id').notNull(),
    pipelineId: text('pipeline_id').notNull(),
    llmModel: text('llm_model'),
    payloadJson: jsonb('payload_json').notNull().default({}),
    createdAt: createdAt(),
  },
  (t) => [
    check('knowledge_events_type', sql`${t.eventType} in ('embedding', 'retrieve', 'compose')`),
    // Those by type and by day are for people who ask in SQL: nothing here does.
    index('knowledge_events_by_type').on(t.eventType),
    index('knowledge_events_by_correlation').on(t.correlationId),
    index('knowledge_events_by_day').on(sql`((created_at at time zone 'UTC')::date)`),
  ],
);
