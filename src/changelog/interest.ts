import type { EventScope, LoggedEvent } from './attempt-events/read-events.sql.ts';
import type { ChangeScope, LoggedChange, LogScope } from './read-changes.sql.ts';
import type { RunChangeFilter, TaskChangeFilter } from './types.ts';

/** What a subscriber may be concerned with. Who gives the same name asks for exactly the same, and shares what is found. */
export interface Interest<Scope> {
  name: string;
  /** It is concerned only with entries that have one of these keys; null: with any. */
  keys: readonly string[] | null;
  /** What of the log has to be read for it. */
  scope: Scope;
}

/** The same of the log: the keys of a filter, where it names any. */
export const scopeOfTasks = ({ runIds, ids, correlationId }: TaskChangeFilter): LogScope => ({
  runIds: runIds ?? null,
  taskIds: ids ?? null,
  correlationId: correlationId ?? null,
});

export const scopeOfRuns = ({ ids, correlationId }: RunChangeFilter): LogScope => ({
  runIds: ids ?? null,
  taskIds: null,
  correlationId: correlationId ?? null,
});

const keyOf = {
  run: (id: string): string => `run ${id}`,
  task: (id: string): string => `task ${id}`,
  attempt: (id: string): string => `attempt ${id}`,
  correlation: (id: string): string => `correlation ${id}`,
};

export const keysOfChange = ({ runId, taskId, correlationId }: LoggedChange): string[] => [
  keyOf.run(runId),
  keyOf.correlation(correlationId),
  ...(taskId === null ? [] : [keyOf.task(taskId)]),
];

export const keysOfEvent = ({ runId, taskId, attemptId }: LoggedEvent): string[] => [
  keyOf.run(runId),
  keyOf.task(taskId),
  keyOf.attempt(attemptId),
];

/** By runs where it names any: a stream of these also follows their ends. */
export const interestInTasks = (filter: TaskChangeFilter): Interest<ChangeScope> => ({
  name: `tasks ${JSON.stringify(filter)}`,
  keys:
    filter.runIds?.map(keyOf.run) ??
    filter.ids?.map(keyOf.task) ??
    (filter.correlationId == null ? null : [keyOf.correlation(filter.correlationId)]),
  scope: { of: filter.runIds ? 'BOTH' : 'TASKS', ...scopeOfTasks(filter) },
});

export const interestInRuns = (filter: RunChangeFilter): Interest<ChangeScope> => ({
  name: `runs ${JSON.stringify(filter)}`,
  keys:
    filter.ids?.map(keyOf.run) ??
    (filter.correlationId == null ? null : [keyOf.correlation(filter.correlationId)]),
  scope: { of: 'RUNS', ...scopeOfRuns(filter) },
});

export const interestInEvents = (scope: EventScope): Interest<EventScope> => {
  const { runId, taskId, attemptId } = scope;
  const key =
    attemptId === null ? (taskId === null ? keyOf.run(runId) : keyOf.task(taskId)) : keyOf.attempt(attemptId);
  return { name: `events of ${key}`, keys: [key], scope };
};

/** In its own changes, or in those of its tasks. */
export const interestInRun = (runId: string, of: 'RUNS' | 'TASKS'): Interest<ChangeScope> => ({
  name: `${of} of run ${runId}`,
  keys: [keyOf.run(runId)],
  scope: { of, runIds: [runId], taskIds: null, correlationId: null },
});
