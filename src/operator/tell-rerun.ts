import { toPublicId } from '../domain/ids.ts';
import type { JsonObject } from '../domain/json.ts';
import { ownTraceId, spanIdOf, type TraceContext, unpackTraceContext } from '../domain/trace-context.ts';
import type { WorkObserver } from '../domain/work-observer.ts';
import type { RunToTell } from './insert-rerun.sql.ts';
import type { RerunOutcome } from './repeat-types.ts';

interface Rerun {
  /** The old run. */
  runId: string;
  config: JsonObject | null;
  traceContext: TraceContext | null;
}

/** What became of it, with what is told beside that: null where no run was read. */
export interface ToldRerun {
  outcome: RerunOutcome;
  run: RunToTell | null;
}

/** Tells what became of a rerun, where somebody hears of it. */
export function tellRerun(
  observer: WorkObserver,
  { runId, config, traceContext }: Rerun,
  { outcome, run }: ToldRerun,
  startedAt: number,
): void {
  const made = outcome.kind === 'LaunchRunSuccess' ? outcome : null;
  observer.admitted({
    kind: 'RERUN',
    of: toPublicId('run', runId),
    ...(made && run ? placeOf(made.runId, run, traceContext) : { id: null, traceContext }),
    correlationId: run?.correlationId ?? null,
    runIds: made ? [made.runId] : [],
    refusals: 0,
    replayed: made?.replayed ?? false,
    isNew: true,
    problem: made ? null : outcome.kind,
    payload: config,
    startedAt,
  });
}

/** Without a trace of its own it goes on in that of the old run: below the event, if one launched it. */
function placeOf(
  id: string,
  { eventId, traceContext }: RunToTell,
  given: TraceContext | null,
): { id: string | null; traceContext: TraceContext | null } {
  if (given) return { id: eventId ?? id, traceContext: given };
  const inherited = unpackTraceContext(traceContext);
  if (eventId === null) return { id, traceContext: inherited };
  const { traceId, sampled } = inherited ?? { traceId: ownTraceId({ eventId, runId: id }), sampled: true };
  return { id: null, traceContext: { traceId, spanId: spanIdOf(eventId), sampled } };
}
