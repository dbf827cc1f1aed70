import { toPublicId } from '../domain/ids.ts';
import type { TraceContext } from '../domain/trace-context.ts';
import { type AdmittedWork, preciseNow, type WorkObserver } from '../domain/work-observer.ts';
import type { IncomingEvent } from './parse-event.ts';
import type { Launch } from './parse-launch.ts';
import type { LaunchRunOutcome, PublishEventOutcome } from './types.ts';

const nothing = {
  id: null,
  correlationId: null,
  runIds: [],
  refusals: 0,
  replayed: false,
  isNew: true,
  problem: null,
};

/** Takes a launch in, and tells what became of it. */
export async function tellLaunch(
  observer: WorkObserver,
  launch: Launch,
  traceContext: TraceContext | null,
  submit: () => Promise<LaunchRunOutcome>,
): Promise<LaunchRunOutcome> {
  const told = { ...nothing, kind: 'LAUNCH', of: launch.job, payload: launch.config, traceContext } as const;
  return tell(observer, { ...told, correlationId: launch.correlationId }, submit, (outcome) => {
    if (outcome.kind !== 'LaunchRunSuccess') return { problem: outcome.kind };
    const { runId: id, replayed, joined = false } = outcome;
    return {
      id,
      replayed,
      isNew: !joined,
      correlationId: launch.correlationId ?? toPublicId('run', id),
      runIds: [id],
    };
  });
}

/** Takes an event in, and tells what became of it. */
export async function tellEvent(
  observer: WorkObserver,
  event: IncomingEvent,
  traceContext: TraceContext | null,
  submit: () => Promise<PublishEventOutcome>,
): Promise<PublishEventOutcome> {
  const told = { ...nothing, kind: 'EVENT', of: event.topic, payload: event.payload, traceContext } as const;
  return tell(observer, { ...told, correlationId: event.correlationId }, submit, (outcome) => {
    if (outcome.kind !== 'PublishEventSuccess') return { problem: outcome.kind };
    const { eventId: id, runIds, refusals, replayed } = outcome;
    const correlationId = event.correlationId ?? toPublicId('evt', id);
    return { id, replayed, correlationId, runIds, refusals: refusals.length };
  });
}

async function tell<Outcome>(
  observer: WorkObserver,
  told: Omit<AdmittedWork, 'startedAt'>,
  submit: () => Promise<Outcome>,
  became: (outcome: Outcome) => Partial<AdmittedWork>,
): Promise<Outcome> {
  const startedAt = preciseNow();
  const outcome = await submit();
  observer.admitted({ ...told, ...became(outcome), startedAt });
  return outcome;
}
