import type { Queryable } from '../db/pool.ts';
import { isJsonObject, type Json, type JsonObject } from '../domain/json.ts';
import { InvalidInputError } from '../domain/problems.ts';
import { parseEstimate } from '../domain/task-fields.ts';
import { eventContext, renderTemplate } from '../domain/template.ts';
import { parseLabels, parseOptionalName } from '../domain/text.ts';
import { topicMatches } from '../domain/topic.ts';
import type { LaunchableJob } from './job-catalog.ts';
import type { IncomingEvent } from './parse-event.ts';
import type { Launch } from './parse-launch.ts';
import { isPlan, planRun, type RunPlan } from './plan-run.ts';
import type { RouteRefusal } from './types.ts';

export interface RouteDefinition {
  name: string;
  topic: string;
  jobId: string;
  config: Json;
  customer: Json;
  labels: Json;
  serialKey: Json;
  estimatedTokens: Json;
  priority: number;
}

/** The routes that any of the topics match, in the order in which their runs are launched. */
export async function loadRoutes(tx: Queryable, topics: readonly string[]): Promise<RouteDefinition[]> {
  const { rows } = await tx.query<RouteDefinition & Record<string, unknown>>({
    name: 'enabled-routes',
    text: `select name, topic, job_id as "jobId", config, customer, labels, serial_key as "serialKey",
                  estimated_tokens as "estimatedTokens", priority
             from runplane.routes where enabled order by name`,
  });
  return rows.filter((route) => topics.some((topic) => topicMatches(route.topic, topic)));
}

export interface StoredEvent {
  id: string;
  correlationId: string;
  event: IncomingEvent;
}

export interface FanOut {
  plans: RunPlan[];
  refusals: RouteRefusal[];
}

/** What an event launches: one run for each matching route, or the reason why a route refuses. Routes are independent. */
export function fanOut(
  stored: StoredEvent,
  routes: readonly RouteDefinition[],
  jobs: ReadonlyMap<string, LaunchableJob>,
): FanOut {
  const result: FanOut = { plans: [], refusals: [] };
  for (const route of routes) {
    if (!topicMatches(route.topic, stored.event.topic)) continue;
    const { plan, refusal } = applyRoute(stored, route, jobs.get(route.jobId));
    if (plan) result.plans.push(plan);
    if (refusal) result.refusals.push(refusal);
  }
  return result;
}

/** What one route makes of an event: a run, or a refusal. */
export interface Applied {
  /** What its templates give; null where one of them fails. */
  launch: Omit<Launch, 'job'> | null;
  plan: RunPlan | null;
  refusal: RouteRefusal | null;
}

export function applyRoute(
  stored: StoredEvent,
  route: RouteDefinition,
  job: LaunchableJob | undefined,
): Applied {
  let launch: Applied['launch'] = null;
  const refused = (message: string, errors: RouteRefusal['errors'] = []): Applied => ({
    launch,
    plan: null,
    refusal: { route: route.name, message, errors },
  });
  if (!job) return refused('The job of this route is disabled.');
  try {
    const context = templateContext(stored);
    launch = launchOf(route, stored, context);
    const plan = planRun(launch, job, { id: stored.id, route: route.name, context: context.event });
    if (isPlan(plan)) return { launch, plan, refusal: null };
    return refused(plan.message, plan.kind === 'RunConfigValidationInvalid' ? plan.errors : []);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    return refused(error.message);
  }
}

/** The routes whose runs these are. */
export const routesOf = (plans: readonly RunPlan[]): string[] => plans.flatMap(({ run }) => run.route ?? []);

interface TemplateContext extends Record<string, unknown> {
  event: JsonObject;
  payload: Json;
}

const templateContext = ({ id, correlationId, event }: StoredEvent): TemplateContext => ({
  event: eventContext({ ...event, id, correlationId, idempotencyKey: event.key?.text ?? null }),
  payload: event.payload,
});

function launchOf(
  route: RouteDefinition,
  stored: StoredEvent,
  context: TemplateContext,
): Omit<Launch, 'job'> {
  const render = (field: keyof RouteDefinition, template: Json): Json => {
    const rendered = renderTemplate(template, context, field);
    if (!rendered.ok)
      throw new InvalidInputError(field, `The route's ${field} template failed: ${rendered.message}`);
    return rendered.value;
  };
  const config = route.config === null ? stored.event.payload : render('config', route.config);
  if (!isJsonObject(config))
    throw new InvalidInputError('config', "The route's config is no JSON object for this event.");
  const customer =
    route.customer === null ? stored.event.customer : textOf('customer', render('customer', route.customer));
  const labels = route.labels === null ? stored.event.labels : labelsOf(render('labels', route.labels));
  const serialKey =
    route.serialKey === null ? null : textOf('serialKey', render('serialKey', route.serialKey));
  const estimate = route.estimatedTokens === null ? null : render('estimatedTokens', route.estimatedTokens);
  if (estimate !== null && typeof estimate !== 'number') {
    throw new InvalidInputError(
      'estimatedTokens',
      "The route's estimatedTokens template must give an integer.",
    );
  }
  return {
    config,
    key: null,
    correlationId: stored.correlationId,
    priority: route.priority,
    customer,
    labels,
    estimatedTokens: parseEstimate(estimate, 'estimatedTokens'),
    availableAt: null,
    serialKey,
    debounce: null,
    steps: new Map(),
  };
}

function textOf(field: string, value: Json): string | null {
  if (value !== null && typeof value !== 'string') {
    throw new InvalidInputError(field, `The route's ${field} template must give a string or null.`);
  }
  return parseOptionalName(value, field);
}

function labelsOf(value: Json): Record<string, string> {
  if (value === null) return {};
  if (!isJsonObject(value))
    throw new InvalidInputError('labels', "The route's labels template must give an object of strings.");
  return parseLabels(
    Object.entries(value).map(([key, entry]) => {
      if (typeof entry !== 'string')
        throw new InvalidInputError('labels', `The route's label ${key} is no string.`);
      return { key, value: entry };
    }),
    'labels',
  );
}
