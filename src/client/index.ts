/** For programs that use a Runplane server, in Node and in browsers. */
import { openWatch } from './open-watch.ts';
import { events, runs, tasks } from './subjects.ts';
import type {
  AttemptEvent,
  AttemptEventsOf,
  Batch,
  EventBatch,
  EventWatchOptions,
  RunChangeFilter,
  RunStatusChange,
  TaskChangeFilter,
  TaskStatusChange,
  WatchOptions,
} from './types.ts';

export * from './types.ts';

/**
 * Follows the changes of the status of tasks. Begins when a first batch is asked for, lasts until it is left (break, or
 * the signal), and throws a WatchError when another try would not help.
 */
export const watchTaskChanges = (
  options: WatchOptions<TaskChangeFilter>,
): AsyncIterableIterator<Batch<TaskStatusChange>> => openWatch(tasks, options);

/** Likewise of runs. */
export const watchRunChanges = (
  options: WatchOptions<RunChangeFilter>,
): AsyncIterableIterator<Batch<RunStatusChange>> => openWatch(runs, options);

/**
 * Follows what agents tell of their progress. It ends with the run, task or attempt, and at once when there is none. There are
 * no pages of events: while the stream does not get through, it is stale.
 */
export function watchAttemptEvents({ of, ...options }: EventWatchOptions): AsyncIterableIterator<EventBatch> {
  const batches = openWatch<AttemptEvent, AttemptEventsOf>(events, { ...options, filter: of });
  const told = (next: IteratorResult<Batch<AttemptEvent>>): IteratorResult<EventBatch> => {
    if (next.done) return next;
    const { cursor, caughtUp, changes } = next.value;
    return { done: false, value: { cursor, caughtUp, events: changes } };
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: async () => told(await batches.next()),
    return: async () => {
      await batches.return?.();
      return { done: true, value: undefined };
    },
  };
}
