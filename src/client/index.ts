/** For programs that use a Runplane server, in Node and in browsers. */
import { openWatch } from './open-watch.ts';
import type {
  Batch,
  RunChangeFilter,
  RunStatusChange,
  TaskChangeFilter,
  TaskStatusChange,
  WatchOptions,
} from './types.ts';
import { runs, tasks } from './watch.ts';

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
