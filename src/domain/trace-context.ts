/** Where work comes from, as W3C Trace Context has it: the span in which somebody asked for it. */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits. */
  traceId: string;
  /** 16 of them. */
  spanId: string;
  /** Whether whoever asked records the trace, so that those who follow do. */
  sampled: boolean;
}

const form = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?<more>-.*)?$/;

/** Reads a traceparent header. One that is missing or malformed starts no trace: null, and the work goes on without. */
export function parseTraceparent(header: string | null | undefined): TraceContext | null {
  if (header == null) return null;
  const found = form.exec(header);
  if (!found) return null;
  const [, traceId = '', spanId = '', flags = ''] = found;
  // Only later versions have more than four parts.
  if (found.groups?.more !== undefined && header.startsWith('00')) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export const formatTraceparent = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;

/** As it is stored: 25 bytes in hexadecimal digits. */
export const packTraceContext = ({ traceId, spanId, sampled }: TraceContext): string =>
  `${traceId}${spanId}${sampled ? '01' : '00'}`;

export function unpackTraceContext(stored: string | null): TraceContext | null {
  if (stored === null) return null;
  return { traceId: stored.slice(0, 32), spanId: stored.slice(32, 48), sampled: stored.slice(48) === '01' };
}

const hexOf = (uuid: string): string => uuid.replaceAll('-', '');

/** The id of the only span that an object has, an attempt or what came in: whoever writes it writes the same. */
export const spanIdOf = (uuid: string): string => hexOf(uuid).slice(16);

/** Work that belongs to a run, as far as traces need to know it. */
export interface TracedWork {
  attemptId: string;
  runId: string;
  eventId: string | null;
  /** Packed; null when whoever asked for the run gave none. */
  traceContext: string | null;
}

/** The trace of a run that nobody gave one: the id of what began it. */
export const ownTraceId = ({ eventId, runId }: Pick<TracedWork, 'eventId' | 'runId'>): string =>
  hexOf(eventId ?? runId);

/**
 * What a worker continues when no spans are written here: the context that came with the work as it was given, else one
 * whose span is the attempt.
 */
export function traceparentOf(work: TracedWork): string {
  const given = unpackTraceContext(work.traceContext);
  return formatTraceparent(
    given ?? { traceId: ownTraceId(work), spanId: spanIdOf(work.attemptId), sampled: true },
  );
}
