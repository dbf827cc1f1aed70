import type { Database } from '../db/pool.ts';
import type { InlineHandler, InlineResult, InlineTask } from '../dispatch/handlers.ts';
import type { Json } from '../domain/json.ts';
import { assetsOf, chatPairAssets } from './assets.ts';
import { createReader, type Message, readMessage } from './message.ts';
import { anyOperationSchema, auditSchema, chatSchema } from './message-schema.ts';
import {
  auditRecord,
  type ChatPairRecord,
  chatPairRecord,
  type EventRecord,
  eventRecord,
  usageOf,
} from './records.ts';
import { storeAudit, storeChatPair, storeEvent } from './store.sql.ts';

export const handlerNames = {
  chatAudit: 'knowledge.chat.audit',
  chatPairRecord: 'knowledge.chat_pair.record',
  chatPairDataset: 'knowledge.chat_pair.dataset',
  eventRecord: 'knowledge.event.record',
  eventDataset: 'knowledge.event.dataset',
} as const;

/**
 * Handlers of the inline agents that installKnowledge saves. Services are started with their handlers, so the database
 * is asked for when a task comes, not before.
 */
export function createKnowledgeHandlers(database: () => Database): ReadonlyMap<string, InlineHandler> {
  return new Map<string, InlineHandler>([
    [handlerNames.chatAudit, (task) => audit(database(), task)],
    [handlerNames.chatPairRecord, recordChatPair],
    [handlerNames.chatPairDataset, (task) => keepChatPair(database(), task)],
    [handlerNames.eventRecord, recordEvent],
    [handlerNames.eventDataset, (task) => keepEvent(database(), task)],
  ]);
}

const readAudit = createReader(auditSchema, (input, task) => ({
  message: readMessage(input, task),
  booksTokens: input.books_tokens !== false,
}));
const readChat = createReader(chatSchema, readMessage);
const readOperation = createReader(anyOperationSchema, (input, task) => ({
  message: readMessage(input, task),
  type: input.event_type as string,
}));

async function audit(db: Database, task: InlineTask): Promise<InlineResult> {
  const { message, booksTokens } = readAudit(task);
  const record = auditRecord(message);
  const stored = await storeAudit(db, record);
  return {
    output: { message_key: record.message_key, stored },
    usage: booksTokens ? usageOf(message, task) : [],
  };
}

const recordChatPair: InlineHandler = (task) => {
  const message = readChat(task);
  const record = chatPairRecord(message);
  return extracted(message, task, record, chatPairAssets.record, { pair_id: record.pair_id });
};

const recordEvent: InlineHandler = (task) => {
  const { message, type } = readOperation(task);
  const record = eventRecord(message, type);
  return extracted(message, task, record, assetsOf(type).record, { event_id: record.event_id });
};

/** The result of a record step: the row to be, made without a database, and the tokens of the message. */
const extracted = (
  message: Message,
  task: InlineTask,
  output: Json,
  assetKey: string,
  metadata: Json,
): InlineResult => ({
  output,
  usage: usageOf(message, task),
  materializations: [{ assetKey, partition: message.correlationId, metadata }],
});

const recordSchema = (...names: string[]): Json => ({
  type: 'object',
  required: [...names, 'correlation_id', 'pipeline_id', 'payload_json'],
  properties: Object.fromEntries(
    [...names, 'correlation_id', 'pipeline_id'].map((name) => [name, { type: 'string' }]),
  ),
});
const readChatPairRecord = createReader(recordSchema('pair_id'), (input) => input as ChatPairRecord);
const readEventRecord = createReader(recordSchema('event_id', 'event_type'), (input) => input as EventRecord);

async function keepChatPair(db: Database, task: InlineTask): Promise<InlineResult> {
  const record = readChatPairRecord(task);
  const stored = await storeChatPair(db, record);
  return kept(record, chatPairAssets.dataset, {
    table: 'knowledge_chat_pairs',
    pair_id: record.pair_id,
    stored,
  });
}

async function keepEvent(db: Database, task: InlineTask): Promise<InlineResult> {
  const record = readEventRecord(task);
  const stored = await storeEvent(db, record);
  const { dataset } = assetsOf(record.event_type);
  return kept(record, dataset, { table: 'knowledge_events', event_id: record.event_id, stored });
}

/** The result of a dataset step. A row that was there is materialized all the same: its lineage is of this run. */
const kept = (record: { correlation_id: string }, assetKey: string, row: Json): InlineResult => ({
  output: row,
  materializations: [{ assetKey, partition: record.correlation_id, metadata: row }],
});
