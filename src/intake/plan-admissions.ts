import type { Queryable } from '../db/pool.ts';
import { createBreather } from '../domain/breather.ts';
import { newUuid, toPublicId } from '../domain/ids.ts';
import type { JobNotFound } from '../domain/problems.ts';
import type { TimeBudget } from '../domain/time-bound.ts';
import { packTraceContext, type TraceContext } from '../domain/trace-context.ts';
import type { DebouncedLaunch } from './debounce-launches.ts';
import { fanOut, loadRoutes, routesOf } from './fan-out.ts';
import { inTime } from './in-time.ts';
import type { EventToStore } from './insert-events.sql.ts';
import type { JobCatalog } from './job-catalog.ts';
import type { IncomingEvent } from './parse-event.ts';
import type { IdempotencyKey, Launch } from './parse-launch.ts';
import { isPlan, planRun, type RunPlan } from './plan-run.ts';
import type { LaunchRunOutcome, PublishEventOutcome } from './types.ts';

/** One command of a group: a launch, or an event with all that it launches; with where it comes from. */
export type Admission = ({ launch: Launch } | { event: IncomingEvent }) & {
  traceContext: TraceContext | null;
};

export const keyOf = (admission: Admission): IdempotencyKey | null =>
  'launch' in admission ? admission.launch.key : admission.event.key;

export type AdmissionOutcome = LaunchRunOutcome | PublishEventOutcome;

export interface Planned {
  index: number;
  key: IdempotencyKey | null;
  objectId: string;
  plans: RunPlan[];
  event: EventToStore | null;
}

const jobNotFound = (name: string): JobNotFound => ({
  kind: 'JobNotFound',
  message: `There is no enabled job ${JSON.stringify(name)}.`,
});

/** Plans what was not answered yet; why something cannot be admitted goes to the outcomes. */
export async function planAdmissions(
  db: Queryable,
  catalog: JobCatalog,
  admissions: readonly Admission[],
  budget: TimeBudget,
  outcomes: Map<number, AdmissionOutcome>,
): Promise<{ planned: Planned[]; debounced: DebouncedLaunch[] }> {
  const open = [...admissions.entries()].filter(([index]) => !outcomes.has(index));
  const topics = open.flatMap(([, admission]) => ('event' in admission ? [admission.event.topic] : []));
  const routes = topics.length > 0 ? await loadRoutes(db, topics) : [];
  const names = new Set(
    open.flatMap(([, admission]) => ('launch' in admission ? [admission.launch.job] : [])),
  );
  const jobs = await catalog.load(db, [...names], [...new Set(routes.map((route) => route.jobId))]);
  const byName = new Map(jobs.map((job) => [job.name, job]));
  const byId = new Map(jobs.map((job) => [job.id, job]));

  const planned: Planned[] = [];
  const debounced: DebouncedLaunch[] = [];
  const breathe = createBreather();
  for (const [index, admission] of open) {
    await breathe();
    if ('event' in admission) {
      const { event } = admission;
      const id = newUuid();
      const stored = { id, correlationId: event.correlationId ?? toPublicId('evt', id), event };
      const fan = inTime(budget, () => fanOut(stored, routes, byId));
      if ('kind' in fan) outcomes.set(index, fan);
      else {
        const { plans, refusals } = fan;
        const launchedRoutes = routesOf(plans);
        for (const { run } of plans) run.trace_context = packed(admission);
        planned.push({
          index,
          key: event.key,
          objectId: id,
          plans,
          event: { stored, refusals, launchedRoutes, traceContext: packed(admission) },
        });
      }
      continue;
    }
    const { launch } = admission;
    const job = byName.get(launch.job);
    const { debounce } = launch;
    if (job && debounce) {
      debounced.push({ index, launch: { ...launch, debounce }, job, traceContext: packed(admission) });
      continue;
    }
    const run = job ? inTime(budget, () => planRun(launch, job, null)) : jobNotFound(launch.job);
    if (isPlan(run)) {
      run.run.trace_context = packed(admission);
      planned.push({ index, key: launch.key, objectId: run.run.id, plans: [run], event: null });
    } else outcomes.set(index, run);
  }
  return { planned, debounced };
}

const packed = ({ traceContext }: Admission): string | undefined =>
  traceContext ? packTraceContext(traceContext) : undefined;
