import { maxInteger, parseOptionalInteger } from './parse-fields.ts';
import { readRow } from './rows.ts';
import type { ObjectKind } from './save.ts';
import type { SaveThrottleInput } from './types.ts';

interface ThrottleSpec {
  maxConcurrentTasks: number | null;
}

/** Claims lock the throttle's row too, so none commits above a limit that was lowered before. */
export const throttleKind: ObjectKind<SaveThrottleInput, ThrottleSpec, null> = {
  noun: 'throttle',
  parse: (input) => ({
    maxConcurrentTasks: parseOptionalInteger(input.maxConcurrentTasks, 'maxConcurrentTasks', 0, maxInteger),
  }),
  resolve: async () => null,
  read: (tx, id) =>
    readRow(
      tx,
      'select max_concurrent_tasks as "maxConcurrentTasks" from runplane.throttles where id = $1',
      id,
    ),
  columns: (spec) => ({ max_concurrent_tasks: spec.maxConcurrentTasks }),
};
