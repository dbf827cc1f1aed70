import type { Database } from '../db/pool.ts';
import { type ListDefinition, readList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { readRows } from './query.ts';
import type { Where } from './where.ts';

/** A stream as the broker showed it last. */
export interface IngestStreamRow {
  stream: string;
  consumer: string;
  subjects: string[];
  ackWaitSeconds: number;
  maxDeliver: number;
  maxAgeSeconds: number | null;
  connected: boolean;
  pending: number | null;
  unacknowledged: number | null;
  redelivered: number | null;
  oldestPendingAgeSeconds: number | null;
  lastSequence: number | null;
}

/** What went wrong with a stream. */
export interface IngestIncidentRow {
  id: string;
  at: Date;
  kind: string;
  fromSequence: number | null;
  toSequence: number | null;
  detail: string;
  eventId: string | null;
  resolvedAt: Date | null;
}

/** Replicas look at their streams every 2 s. */
const connectedSeconds = 10;

const streamsSql = `
with now as materialized (select runplane.clock() as at)
select s.stream, s.consumer, s.subjects, s.ack_wait_seconds as "ackWaitSeconds", s.max_deliver as "maxDeliver", s.max_age_seconds as "maxAgeSeconds",
       coalesce(s.seen_at > n.at - interval '${connectedSeconds} seconds', false) as connected, s.pending, s.unacknowledged, s.redelivered,
       extract(epoch from n.at - s.oldest_pending_at)::float8 as "oldestPendingAgeSeconds", s.last_sequence as "lastSequence"
  from runplane.ingest_streams s cross join now n order by s.stream, s.consumer`;

const incidents: ListDefinition = {
  name: 'ingest incidents',
  columns: `i.id, i.at, i.kind, i.from_sequence as "fromSequence", i.to_sequence as "toSequence", i.detail, i.event_id as "eventId",
            i.resolved_at as "resolvedAt"`,
  from: 'runplane.ingest_incidents i',
  key: [{ sql: 'i.id', type: 'uuid' }],
  descending: true,
};

export class IngestQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** By name. */
  streams(): Promise<IngestStreamRow[]> {
    return readRows(this.#db, { name: 'ingest-streams', text: streamsSql });
  }

  /** Of a stream, newest first. */
  incidents(
    { stream, consumer }: Pick<IngestStreamRow, 'stream' | 'consumer'>,
    page: PageArgs,
  ): Promise<Page<IngestIncidentRow>> {
    const question = {
      list: incidents,
      filter: { stream, consumer },
      conditions: (where: Where): void => {
        where.equals('i.stream', stream);
        where.equals('i.consumer', consumer);
      },
    };
    return readList(this.#db, question, page);
  }
}
