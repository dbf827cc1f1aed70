import type { TraceContext } from '../domain/trace-context.ts';
import type { TelemetryConfig } from '../telemetry-config.ts';

/** A span that is over. Times are milliseconds since 1970, or a time of the database. */
export interface SpanOptions {
  name: 'intake' | 'claim' | 'dispatch' | 'attempt' | 'result';
  /** As the API of OpenTelemetry numbers them. */
  kind: number;
  /** Of a span without a parent; with one, it is the parent's. */
  traceId: string;
  /** Null: a new one. */
  spanId: string | null;
  parent: TraceContext | null;
  links: readonly TraceContext[];
  startedAt: number | Date;
  endedAt: number | Date;
  /** Null: not known, and left out. */
  attributes: Readonly<Record<string, string | number | boolean | string[] | null>>;
  /** Null: it is not said. */
  status: { code: number; message: string } | null;
}

export interface SpanWriter {
  /** Whether spans of a trace are recorded, by what its parent or its id says. */
  isSampled(traceId: string, parent: TraceContext | null): boolean;
  write(span: SpanOptions): void;
  /** Sends what is there. */
  stop(): Promise<void>;
}

export interface SpanWriterOptions {
  config: TelemetryConfig;
  version: string;
  instanceId: string;
}
