import type { LoggedChange } from './read-changes.sql.ts';
import type { LabelFilter, RunChange, RunChangeFilter, TaskChange, TaskChangeFilter } from './types.ts';

export type LoggedTaskChange = LoggedChange & TaskChange;
export type LoggedRunChange = LoggedChange & RunChange;

type Check = (change: LoggedChange) => boolean;
type List = readonly string[] | null | undefined;

const isIn = (list: List, valueOf: (change: LoggedChange) => string | null): Check[] => {
  if (list === null || list === undefined) return [];
  const allowed = new Set<string | null>(list);
  return [(change) => allowed.has(valueOf(change))];
};

const hasLabel =
  ({ key, values }: LabelFilter): Check =>
  ({ labels }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    return value !== undefined && (values == null || values.includes(value));
  };

function labelChecks({ labels, anyLabels }: TaskChangeFilter | RunChangeFilter): Check[] {
  const checks: Check[] = [];
  // An empty list matches nothing, of both.
  if (labels) checks.push(() => labels.length > 0, ...labels.map(hasLabel));
  if (anyLabels) {
    const any = anyLabels.map(hasLabel);
    checks.push((change) => any.some((has) => has(change)));
  }
  return checks;
}

/** After is inclusive, Before exclusive. */
const createdChecks = ({
  createdAfter: after,
  createdBefore: before,
}: TaskChangeFilter | RunChangeFilter): Check[] => [
  ...(after ? [({ createdAt }: LoggedChange) => createdAt >= after] : []),
  ...(before ? [({ createdAt }: LoggedChange) => createdAt < before] : []),
];

const sharedChecks = (filter: TaskChangeFilter | RunChangeFilter): Check[] => [
  ...isIn(filter.statuses, ({ toStatus }) => toStatus),
  ...isIn(filter.jobs, ({ job }) => job),
  ...isIn(filter.customers, ({ customer }) => customer),
  ...isIn(filter.correlationId == null ? null : [filter.correlationId], (change) => change.correlationId),
  ...createdChecks(filter),
  ...labelChecks(filter),
];

/** Tells of a change whether it is one of a task that the filter asks for: what it does not name is not looked at. */
export function taskMatcher(filter: TaskChangeFilter): (change: LoggedChange) => change is LoggedTaskChange {
  const checks = [
    ...isIn(filter.ids, ({ taskId }) => taskId),
    ...isIn(filter.runIds, ({ runId }) => runId),
    ...isIn(filter.steps, ({ step }) => step),
    ...isIn(filter.agents, ({ agent }) => agent),
    ...isIn(filter.queues, ({ queue }) => queue),
    ...sharedChecks(filter),
  ];
  if (filter.not) {
    const matchesNot = taskMatcher(filter.not);
    checks.push((change) => !matchesNot(change));
  }
  return (change): change is LoggedTaskChange =>
    change.taskId !== null && checks.every((check) => check(change));
}

/** The same of a run. */
export function runMatcher(filter: RunChangeFilter): (change: LoggedChange) => change is LoggedRunChange {
  const checks = [
    ...isIn(filter.ids, ({ runId }) => runId),
    ...isIn(filter.idempotencyKeys, ({ idempotencyKey }) => idempotencyKey),
    ...sharedChecks(filter),
  ];
  return (change): change is LoggedRunChange =>
    change.taskId === null && checks.every((check) => check(change));
}
