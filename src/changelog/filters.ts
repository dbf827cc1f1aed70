import type { LoggedChange } from './read-changes.sql.ts';
import type { LabelFilter, RunChangeFilter, TaskChangeFilter } from './types.ts';

type List = readonly string[] | null | undefined;

const allows = (list: List, value: string | null): boolean =>
  list === null || list === undefined || (value !== null && list.includes(value));

const hasLabel = (labels: Record<string, string>, { key, values }: LabelFilter): boolean =>
  Object.hasOwn(labels, key) && allows(values, labels[key] ?? null);

const labelsMatch = (
  filter: { labels?: readonly LabelFilter[] | null; anyLabels?: readonly LabelFilter[] | null },
  labels: Record<string, string>,
): boolean =>
  (!filter.labels ||
    (filter.labels.length > 0 && filter.labels.every((wanted) => hasLabel(labels, wanted)))) &&
  (!filter.anyLabels || filter.anyLabels.some((wanted) => hasLabel(labels, wanted)));

/** After is inclusive, Before exclusive. */
const createdWithin = (filter: TaskChangeFilter | RunChangeFilter, at: Date): boolean =>
  (!filter.createdAfter || at >= filter.createdAfter) && (!filter.createdBefore || at < filter.createdBefore);

const sharedMatch = (filter: TaskChangeFilter | RunChangeFilter, change: LoggedChange): boolean =>
  allows(filter.statuses, change.toStatus) &&
  allows(filter.jobs, change.job) &&
  allows(filter.customers, change.customer) &&
  (filter.correlationId == null || filter.correlationId === change.correlationId) &&
  createdWithin(filter, change.createdAt) &&
  labelsMatch(filter, change.labels);

/** Whether a task's change is one that the filter asks for. */
export const matchesTask = (filter: TaskChangeFilter, change: LoggedChange): boolean =>
  change.taskId !== null &&
  allows(filter.ids, change.taskId) &&
  allows(filter.runIds, change.runId) &&
  allows(filter.steps, change.step) &&
  allows(filter.agents, change.agent) &&
  allows(filter.queues, change.queue) &&
  sharedMatch(filter, change) &&
  !(filter.not && matchesTask(filter.not, change));

/** Whether a run's change is one that the filter asks for. */
export const matchesRun = (filter: RunChangeFilter, change: LoggedChange): boolean =>
  change.taskId === null &&
  allows(filter.ids, change.runId) &&
  allows(filter.idempotencyKeys, change.idempotencyKey) &&
  sharedMatch(filter, change);
