import type { Database } from '../db/pool.ts';
import type { ConfigError } from '../domain/problems.ts';
import { type ListDefinition, readList, readTraceList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { readById } from './query.ts';
import type { Where } from './where.ts';

export type EventSource = 'GRAPHQL' | 'NATS';

/** An event without its payload. */
export interface EventRow {
  id: string;
  topic: string;
  idempotencyKey: string | null;
  correlationId: string;
  source: EventSource;
  rejection: { code: string; message: string | null; at: string; bytes?: number } | null;
  refusals: { route: string; message: string; errors: ConfigError[] }[];
  receivedAt: Date;
}

export interface EventFilter {
  topics?: readonly string[] | null;
  correlationId?: string | null;
  sources?: readonly EventSource[] | null;
  rejected?: boolean | null;
  receivedAfter?: Date | null;
  receivedBefore?: Date | null;
}

const columns = `
e.id, e.topic, e.idempotency_key as "idempotencyKey", e.correlation_id as "correlationId", e.source, e.rejection, e.refusals,
e.received_at as "receivedAt"`;
const from = 'runplane.events e';

const byIdSql = `select ${columns} from ${from} where e.id = any($1)`;
const payloadSql = 'select id, payload, raw from runplane.events where id = any($1)';

const key = [{ sql: 'e.id', type: 'uuid' }] as const;
const newestFirst: ListDefinition = { name: 'events', columns, from, key, descending: true };
const ofTrace: ListDefinition = {
  ...newestFirst,
  name: 'events of trace',
  from: '(select x.* from runplane.events x where x.correlation_id = parent.id offset 0) e',
  key: [{ sql: 'e.received_at', type: 'time' }, ...key],
  descending: false,
};

function addEventFilter(where: Where, filter: EventFilter): void {
  where.isOneOf('e.topic', filter.topics);
  where.equals('e.correlation_id', filter.correlationId);
  where.isOneOf('e.source::text', filter.sources);
  // As the index of rejected events says it.
  if (filter.rejected != null) where.and(`e.rejection is ${filter.rejected ? 'not null' : 'null'}`);
  where.between('e.received_at', filter.receivedAfter, filter.receivedBefore);
}

export class EventQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, EventRow>> {
    return readById(this.#db, 'events-by-id', byIdSql, ids);
  }

  payloads(
    ids: readonly string[],
  ): Promise<Map<string, { id: string; payload: unknown; raw: Buffer | null }>> {
    return readById(this.#db, 'event-payloads', payloadSql, ids);
  }

  /** Newest first. */
  async list(filter: EventFilter, page: PageArgs): Promise<Page<EventRow>> {
    return readList(
      this.#db,
      { list: newestFirst, filter, conditions: (where) => addEventFilter(where, filter) },
      page,
    );
  }

  /** All that carry one correlation id, oldest first. */
  ofCorrelation(correlationId: string, page: PageArgs): Promise<Page<EventRow>> {
    return readTraceList(this.#db, ofTrace, correlationId, page);
  }
}
