import type { Queryable } from '../db/pool.ts';
import { readRows } from './query.ts';
import {
  addTaskFilter,
  knownReasons,
  type TaskFilter,
  type TaskSource,
  tasksByReason,
  tasksInOrder,
} from './task-filter.ts';
import { waitingTasksSql } from './waiting-tasks.sql.ts';
import type { Where } from './where.ts';

export type PageSource = Omit<TaskSource, 'waitsFor'> & { conditions: (where: Where) => void };

/** So many are found and looked up by their ids in a moment. */
const fewTasks = 10_000;

/**
 * What a page of the list of all tasks is read from. By waiting reasons: when few tasks wait for them, those; when many
 * do, the list is walked in its order, in which a page is soon full, if it has an order that an index gives. However many
 * tasks are past, no more is read than what waits.
 */
export async function tasksOfPage(db: Queryable, filter: TaskFilter, byIndex: boolean): Promise<PageSource> {
  const reasons = knownReasons(filter);
  const from = ({ waitsFor, ...source }: TaskSource): PageSource => ({
    ...source,
    conditions: (where) => addTaskFilter(where, filter, waitsFor),
  });
  if (reasons.length === 0) return from(tasksInOrder(filter));
  const rows = await readRows<{ id: string }>(db, {
    text: `select w.id from ${waitingTasksSql(reasons)} w(id) limit ${fewTasks + 1}`,
    values: [],
  });
  if (rows.length > fewTasks) return from(byIndex ? tasksInOrder(filter) : tasksByReason);
  const others = { ...filter, waitingReasons: null };
  const { waitsFor, ...source } = tasksInOrder(others);
  const ids = rows.map(({ id }) => id);
  return {
    ...source,
    conditions: (where) => {
      where.isOneOf('t.id', ids, 'uuid');
      addTaskFilter(where, others, waitsFor);
    },
  };
}
