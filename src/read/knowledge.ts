import type { Database } from '../db/pool.ts';
import { type ListDefinition, readTraceList } from './list.ts';
import type { Page, PageArgs } from './page.ts';

/** A row of one of the tables of the built-in knowledge pipeline. */
export interface KnowledgeRow {
  /** Unique among all these tables. */
  id: string;
  table: string;
  at: Date;
  eventId: string | null;
  /** The row's columns, but its number and its time. */
  data: Record<string, unknown>;
}

const tables = [
  ['knowledge_chat_audit', 'null'],
  ['knowledge_chat_pairs', 'null'],
  ['knowledge_events', 'x.event_id'],
] as const;

const rows = tables
  .map(
    ([table, eventId]) => `
select '${table}' as "table", x.id as number, x.created_at, ${eventId} as event_id,
       to_jsonb(x) - 'id' - 'created_at' as data from runplane.${table} x where x.correlation_id = parent.id`,
  )
  .join(' union all ');

const ofTrace: ListDefinition = {
  name: 'knowledge records of trace',
  columns: `k."table" || ':' || k.number as id, k."table", k.created_at as at, k.event_id as "eventId", k.data`,
  from: `(${rows}) k`,
  key: [
    { sql: 'k.created_at', type: 'time' },
    { sql: 'k."table"', type: 'text' },
    { sql: 'k.number', type: 'integer' },
  ],
  descending: false,
};

export class KnowledgeQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** All that carry one correlation id, oldest first. */
  ofCorrelation(correlationId: string, page: PageArgs): Promise<Page<KnowledgeRow>> {
    return readTraceList(this.#db, ofTrace, correlationId, page);
  }
}
