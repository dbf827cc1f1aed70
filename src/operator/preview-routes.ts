import { setImmediate } from 'node:timers/promises';
import type { Database, Queryable } from '../db/pool.ts';
import { newUuid, toPublicId } from '../domain/ids.ts';
import { limits } from '../domain/limits.ts';
import { type InvalidInput, isInvalidInput, notFound, parsed } from '../domain/problems.ts';
import { parseName } from '../domain/text.ts';
import { TimeBudget } from '../domain/time-bound.ts';
import { topicMatches } from '../domain/topic.ts';
import { applyRoute, loadRoutes, type RouteDefinition, type StoredEvent } from '../intake/fan-out.ts';
import { inTime } from '../intake/in-time.ts';
import { JobCatalog, type LaunchableJob } from '../intake/job-catalog.ts';
import { parseEvent } from '../intake/parse-event.ts';
import type { RoutePreview } from './preview-types.ts';
import { findIds, isNotFound } from './rows.ts';
import { routeKind } from './save-route.ts';
import type { Configuration, SaveRouteInput } from './types.ts';

/** A route to try: what is known of it without the job that it names, or why it could not even be saved. */
interface Draft {
  name: string;
  job: string;
  spec: Omit<RouteDefinition, 'jobId' | 'name'> | InvalidInput;
}

/** Tries routes on a message by the code that launches from them. */
export function createRoutePreview(db: Database): Configuration['previewRoutes'] {
  const catalog = new JobCatalog();
  return async ({ topic, payload, draft: given }) => {
    const request = parsed(() => ({
      event: parseEvent({ topic, payload }),
      draft: given ? parseDraft(given) : null,
    }));
    if (isInvalidInput(request)) return request;
    const { event, draft } = request;
    const id = newUuid();
    const stored: StoredEvent = { id, correlationId: event.correlationId ?? toPublicId('evt', id), event };
    const saved = (await loadRoutes(db, [event.topic])).filter(({ name }) => name !== draft?.name);
    const jobIds = saved.map(({ jobId }) => jobId);
    const names = await readJobNames(db, jobIds);
    const jobs = await catalog.load(db, draft ? [draft.job] : [], jobIds);
    const budget = new TimeBudget(limits.sharedMs, limits.hurriedMs);
    const previews: RoutePreview[] = [];
    for (const route of saved) {
      await setImmediate();
      const job = jobs.find((each) => each.id === route.jobId);
      previews.push(preview(stored, route, names.get(route.jobId) ?? '', job, budget));
    }
    if (draft) previews.push(...(await tryDraft(db, stored, draft, jobs, budget)));
    return previews.sort((a, b) => (a.route < b.route ? -1 : 1));
  };
}

function preview(
  stored: StoredEvent,
  route: RouteDefinition,
  jobName: string,
  job: LaunchableJob | undefined,
  budget: TimeBudget,
): RoutePreview {
  const applied = inTime(budget, () => applyRoute(stored, route, job));
  if ('kind' in applied) return { route: route.name, job: jobName, launch: null, problem: applied.message };
  const { launch, refusal } = applied;
  return { route: route.name, job: jobName, launch, problem: refusal?.message ?? null };
}

/** Whether it is enabled or not: it is asked about because it is not saved yet. */
async function tryDraft(
  db: Queryable,
  stored: StoredEvent,
  { name, job: jobName, spec }: Draft,
  jobs: readonly LaunchableJob[],
  budget: TimeBudget,
): Promise<RoutePreview[]> {
  const refused = (problem: string): RoutePreview[] => [{ route: name, job: jobName, launch: null, problem }];
  if (isInvalidInput(spec)) return refused(spec.message);
  if (!topicMatches(spec.topic, stored.event.topic)) return [];
  const job = jobs.find((each) => each.name === jobName);
  const ids = await findIds(db, 'job', [jobName]);
  if (isNotFound(ids)) return refused(notFound('job', jobName).message);
  return [preview(stored, { ...spec, name, jobId: ids.get(jobName) ?? '' }, jobName, job, budget)];
}

/** A draft whose names are right; what else is wrong with it is what is asked about. */
function parseDraft(given: SaveRouteInput): Draft {
  const name = parseName(given.name, 'draft.name');
  const job = parseName(given.job, 'draft.job');
  return { name, job, spec: parsed(() => routeKind.parse(given)) };
}

async function readJobNames(db: Queryable, ids: readonly string[]): Promise<Map<string, string>> {
  const { rows } = await db.query<{ id: string; name: string }>({
    text: 'select id, name from runplane.jobs where id = any($1)',
    values: [ids],
  });
  return new Map(rows.map((row) => [row.id, row.name]));
}
