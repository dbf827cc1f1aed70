import type { AttemptEventsOf, RunChangeFilter, TaskChangeFilter } from './types.ts';

/** What is watched: the operations that tell it, by their names in the document. */
export interface Subject<Filter> {
  stream: string;
  /** Null: there are none. */
  page: string | null;
  /** Of the operations: what is asked for. */
  argument: 'filter' | 'of';
  /** Runs whose end ends the watch; null: it has no end but that of its stream. */
  runsOf: (filter: Filter) => readonly string[] | null;
}

export const tasks: Subject<TaskChangeFilter> = {
  stream: 'ClientTasks',
  page: 'ClientTaskPage',
  argument: 'filter',
  runsOf: ({ runIds }) => runIds ?? null,
};

export const runs: Subject<RunChangeFilter> = {
  stream: 'ClientRuns',
  page: 'ClientRunPage',
  argument: 'filter',
  runsOf: ({ ids }) => ids ?? null,
};

export const events: Subject<AttemptEventsOf> = {
  stream: 'ClientEvents',
  page: null,
  argument: 'of',
  runsOf: () => null,
};
