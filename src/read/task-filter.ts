import type { TaskChangeFilter } from '../changelog/types.ts';
import { addLabelFilters } from './label-filter.ts';
import type { Where } from './where.ts';

/** Which tasks are asked for, by what they are now as well. Fields are AND, entries of a list OR. Ids are UUIDs. */
export interface TaskFilter extends Omit<TaskChangeFilter, 'not'> {
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

/** Adds the conditions of a filter on tasksFrom. */
export function addTaskFilter(where: Where, filter: TaskFilter): void {
  where.isOneOf('t.id', filter.ids, 'uuid');
  where.isOneOf('t.run_id', filter.runIds, 'uuid');
  where.isOneOf(taskStatus, filter.statuses);
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
  if (not) where.not((inner) => addTaskFilter(inner, not));
}
