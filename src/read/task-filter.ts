import type { TaskChangeFilter } from '../changelog/types.ts';
import { addLabelFilters } from './label-filter.ts';
import { type WaitingReason, waitingReasons } from './waiting.sql.ts';
import { agentFacts } from './waiting-facts.sql.ts';
import { reasonOfListed, waitingTasksSql } from './waiting-tasks.sql.ts';
import type { Where } from './where.ts';

/** Which tasks are asked for, by what they are now as well. Fields are AND, entries of a list OR. Ids are UUIDs. */
export interface TaskFilter extends Omit<TaskChangeFilter, 'not'> {
  /** Why they wait; one that there cannot be matches nothing. */
  waitingReasons?: readonly string[] | null;
  errorCodes?: readonly string[] | null;
  finishedAfter?: Date | null;
  finishedBefore?: Date | null;
  not?: TaskFilter | null;
}

/**
 * Tasks with everything that a filter or a task's own columns speak of; deleted ones are none of them. An open task is
 * processed while it has a lease.
 */
export const tasksFrom = `runplane.tasks t
  join runplane.runs r on r.id = t.run_id and t.deleted_at is null
  join runplane.jobs j on j.id = r.job_id
  join runplane.agents a on a.id = t.agent_id
  join runplane.queues q on q.id = a.queue_id
  left join runplane.leases l on l.task_id = t.id`;

export const taskStatus = `case when t.state <> 'OPEN' then t.state::text when l.task_id is null then 'ENQUEUED' else 'PROCESSING' end`;

export const knownReasons = (filter: TaskFilter): WaitingReason[] =>
  waitingReasons.filter((reason) => filter.waitingReasons?.includes(reason));

/** That a task waits for one of these reasons; negated: as part of what must not hold. */
type WaitsFor = (where: Where, reasons: readonly WaitingReason[], negated: boolean) => string;

/** Where the tasks of a filter come from, and in which words it asks why they wait. */
export interface TaskSource {
  from: string;
  with?: string;
  waitsFor: WaitsFor;
}

/**
 * For a filter that few tasks match, or whose matches are all read: begins with the tasks that wait for its reasons. In
 * both forms these are found once. A join, planned for few of them, would find them anew for each task.
 */
export const tasksByReason: TaskSource = {
  from: tasksFrom,
  waitsFor: (_, reasons, negated) => {
    const waiting = `select w.task_id from ${waitingTasksSql(reasons)} w(task_id)`;
    return negated ? `t.id in (${waiting})` : `t.id = any(array(${waiting}))`;
  },
};

/** For a filter that many tasks match, or within a run: each task is asked why it waits, in the order of the list. */
export function tasksInOrder(filter: TaskFilter): TaskSource {
  const asked = [filter, filter.not].some((one) => one && knownReasons(one).length > 0);
  return {
    from: tasksFrom,
    waitsFor: (where, reasons) => `(${reasonOfListed}) = any(${where.param(reasons)}::text[])`,
    ...(asked && { with: agentFacts('true') }),
  };
}

/** Adds the conditions of a filter on its source. */
export function addTaskFilter(
  where: Where,
  filter: TaskFilter,
  waitsFor = tasksByReason.waitsFor,
  negated = false,
): void {
  where.isOneOf('t.id', filter.ids, 'uuid');
  where.isOneOf('t.run_id', filter.runIds, 'uuid');
  where.isOneOf(taskStatus, filter.statuses);
  if (filter.waitingReasons) {
    const reasons = knownReasons(filter);
    where.and(reasons.length === 0 ? 'false' : waitsFor(where, reasons, negated));
  }
  where.isOneOf('j.name', filter.jobs);
  where.isOneOf('t.step', filter.steps);
  where.isOneOf('a.name', filter.agents);
  where.isOneOf('q.name', filter.queues);
  where.isOneOf('r.customer', filter.customers);
  addLabelFilters(where, 'coalesce(t.labels, r.labels)', filter);
  where.equals('r.correlation_id', filter.correlationId);
  where.isOneOf('t.error_code', filter.errorCodes);
  where.between('t.created_at', filter.createdAfter, filter.createdBefore);
  where.between('t.finished_at', filter.finishedAfter, filter.finishedBefore);
  const { not } = filter;
  if (not) where.not((inner) => addTaskFilter(inner, not, waitsFor, true));
}
