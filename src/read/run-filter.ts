import type { RunChangeFilter } from '../changelog/types.ts';
import { addLabelFilters } from './label-filter.ts';
import type { Where } from './where.ts';

/** Which runs are asked for, by what they are now as well. Fields are AND, entries of a list OR. Ids are UUIDs. */
export interface RunFilter extends RunChangeFilter {
  finishedAfter?: Date | null;
  finishedBefore?: Date | null;
}

/** Runs with everything that a filter speaks of. */
export const runsFrom = 'runplane.runs r join runplane.jobs j on j.id = r.job_id';

/**
 * Of a trace, where the parent is its correlation id. Looked up and not joined, as all that belongs to them: however many
 * rows there are, no plan goes through more than those of the trace.
 */
export const runsOfCorrelation =
  '(select x.* from runplane.runs x where x.correlation_id = parent.id offset 0) r';

/** Adds the conditions of a filter on runsFrom. */
export function addRunFilter(where: Where, filter: RunFilter): void {
  where.isOneOf('r.id', filter.ids, 'uuid');
  where.isOneOf('r.idempotency_key', filter.idempotencyKeys);
  where.isOneOf('r.status::text', filter.statuses);
  where.isOneOf('j.name', filter.jobs);
  where.isOneOf('r.customer', filter.customers);
  addLabelFilters(where, 'r.labels', filter);
  where.equals('r.correlation_id', filter.correlationId);
  where.between('r.created_at', filter.createdAfter, filter.createdBefore);
  where.between('r.finished_at', filter.finishedAfter, filter.finishedBefore);
}
