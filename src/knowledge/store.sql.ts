import pg from 'pg';
import type { Database } from '../db/pool.ts';
import { statement } from '../db/transaction.ts';
import { refuse } from './message.ts';
import type { AuditRecord, ChatPairRecord, EventRecord } from './records.ts';

// Each table has one unique key, which the record carries: a second delivery, or a handler that runs again after a
// crash, inserts nothing. What is stored first stands.
const insertAudit = `
insert into runplane.knowledge_chat_audit (message_key, pipeline_id, correlation_id, idempotency_key, model, prompt, response, payload_json)
select message_key, pipeline_id, correlation_id, idempotency_key, model, prompt, response, $1::jsonb -> 'payload_json'
  from jsonb_to_record($1::jsonb) as r(message_key text, pipeline_id text, correlation_id text, idempotency_key text, model text,
                                       prompt text, response text)
on conflict (message_key) do nothing`;

const insertChatPair = `
insert into runplane.knowledge_chat_pairs (pair_id, correlation_id, pipeline_id, llm_model, prompt, response, prompt_tokens,
                                           completion_tokens, total_tokens, payload_json)
select pair_id, correlation_id, pipeline_id, llm_model, prompt, response, prompt_tokens, completion_tokens, total_tokens,
       $1::jsonb -> 'payload_json'
  from jsonb_to_record($1::jsonb) as r(pair_id text, correlation_id text, pipeline_id text, llm_model text, prompt text, response text,
                                       prompt_tokens int, completion_tokens int, total_tokens int)
on conflict (pair_id) do nothing`;

const insertEvent = `
insert into runplane.knowledge_events (event_id, event_type, correlation_id, pipeline_id, llm_model, payload_json)
select event_id, event_type, correlation_id, pipeline_id, llm_model, $1::jsonb -> 'payload_json'
  from jsonb_to_record($1::jsonb) as r(event_id text, event_type text, correlation_id text, pipeline_id text, llm_model text)
on conflict (event_id) do nothing`;

/** False: the row was there. */
export const storeAudit = (db: Database, record: AuditRecord): Promise<boolean> =>
  store(db, 'store-knowledge-audit', insertAudit, record);
export const storeChatPair = (db: Database, record: ChatPairRecord): Promise<boolean> =>
  store(db, 'store-knowledge-chat-pair', insertChatPair, record);
export const storeEvent = (db: Database, record: EventRecord): Promise<boolean> =>
  store(db, 'store-knowledge-event', insertEvent, record);

/** Data exceptions, broken constraints and program limits: the same row fails in the same way again. */
const permanentClasses = new Set(['22', '23', '54']);

async function store(db: Database, name: string, text: string, record: object): Promise<boolean> {
  try {
    const { rowCount } = await statement(db, { name, text, values: [JSON.stringify(record)] });
    return rowCount === 1;
  } catch (error) {
    if (error instanceof pg.DatabaseError && permanentClasses.has(error.code?.slice(0, 2) ?? '')) {
      throw refuse(`The database refuses the record: ${error.message}`);
    }
    throw error;
  }
}
