import type { Database } from '../db/pool.ts';
import type { Intake } from '../intake/types.ts';

export interface IngestLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** A durable consumer of a stream, and how it is to be. */
export interface Source {
  stream: string;
  consumer: string;
  ackWaitSeconds: number;
  maxDeliver: number;
  /** Messages that this process works on at once, at most. */
  batch: number;
}

/** What failed is not delivered again before that. */
export const nakMs = ({ ackWaitSeconds }: Source): number => Math.min(5000, ackWaitSeconds * 500);

export interface IngestContext {
  db: Database;
  intake: Intake;
  log: IngestLog;
}

/** A message of a stream, delivered or read by its number. */
export interface StreamMessage {
  subject: string;
  data: Uint8Array;
  /** Null: there is none of that name, in whatever case. */
  header(name: string): string | null;
  /** Its headers are none that NATS allows: none of them is known. */
  hasBrokenHeaders: boolean;
  sequence: number;
  /** When the broker stored it, in nanoseconds since 1970: the same at each delivery. */
  storedAt: bigint;
}

export const incidentKinds = [
  'GAP',
  'POISON',
  'MAX_DELIVER',
  'CONFLICT',
  'STREAM_MISSING',
  'CONSUMER_MISSING',
  'AGE_WARNING',
] as const;
export type IncidentKind = (typeof incidentKinds)[number];

export interface Incident {
  kind: IncidentKind;
  from: number | null;
  to: number | null;
  detail: string;
  eventId?: string | null;
  /** It was over when it was noticed. */
  isOver?: boolean;
}
