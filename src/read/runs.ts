import type { Database } from '../db/pool.ts';
import type { ErrorKind } from '../domain/retry-policy.ts';
import type { RunStatus } from '../domain/status.ts';
import { type ListDefinition, readChildLists, readList, readTraceList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { readById } from './query.ts';
import { addRunFilter, type RunFilter, runsFrom, runsOfCorrelation } from './run-filter.ts';

/** A run without its config. */
export interface RunRow {
  id: string;
  jobId: string;
  jobVersion: number;
  status: RunStatus;
  correlationId: string;
  idempotencyKey: string | null;
  serialKey: string | null;
  debounceKey: string | null;
  customer: string | null;
  labels: Record<string, string>;
  priority: number;
  eventId: string | null;
  parentRunId: string | null;
  /** Of the task that decided a failed run. */
  errorCode: string | null;
  errorKind: ErrorKind | null;
  errorMessage: string | null;
  availableAt: Date;
  createdAt: Date;
  startedAt: Date | null;
  cancelRequestedAt: Date | null;
  finishedAt: Date | null;
}

const columns = `
r.id, r.job_id as "jobId", r.job_version as "jobVersion", r.status, r.correlation_id as "correlationId",
r.idempotency_key as "idempotencyKey", r.serial_key as "serialKey", r.debounce_key as "debounceKey", r.customer, r.labels, r.priority, r.event_id as "eventId",
r.parent_run_id as "parentRunId", f.error_code as "errorCode", f.error_kind as "errorKind", f.error_message as "errorMessage",
r.available_at as "availableAt", r.created_at as "createdAt", r.started_at as "startedAt",
r.cancel_requested_at as "cancelRequestedAt", r.finished_at as "finishedAt"`;

const from = `${runsFrom}
  left join runplane.tasks f on f.id = r.failed_task_id and r.status = 'FAILED'`;

const byIdSql = `select ${columns} from ${from} where r.id = any($1)`;
const configSql = 'select id, config from runplane.runs where id = any($1)';

const key = [{ sql: 'r.id', type: 'uuid' }] as const;
const newestFirst: ListDefinition = { name: 'runs', columns, from, key, descending: true };
const ofJob: ListDefinition = { ...newestFirst, name: 'runs of job' };
const ofEvent: ListDefinition = { ...newestFirst, name: 'runs of event', descending: false };
const ofTrace: ListDefinition = {
  ...newestFirst,
  name: 'runs of trace',
  from: `${runsOfCorrelation}
  join runplane.jobs j on j.id = r.job_id
  left join lateral (
    select y.error_code, y.error_kind, y.error_message from runplane.tasks y
     where y.id = r.failed_task_id and r.status = 'FAILED' offset 0) f on true`,
  key: [{ sql: 'r.created_at', type: 'time' }, ...key],
  descending: false,
};

export class RunQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, RunRow>> {
    return readById(this.#db, 'runs-by-id', byIdSql, ids);
  }

  configs(ids: readonly string[]): Promise<Map<string, { id: string; config: unknown }>> {
    return readById(this.#db, 'run-configs', configSql, ids);
  }

  /** Newest first. */
  async list(filter: RunFilter, page: PageArgs): Promise<Page<RunRow>> {
    return readList(
      this.#db,
      { list: newestFirst, filter, conditions: (where) => addRunFilter(where, filter) },
      page,
    );
  }

  /** Newest first. */
  ofJobs(jobIds: readonly string[], page: PageArgs): Promise<Map<string, Page<RunRow>>> {
    return readChildLists(
      this.#db,
      { list: ofJob, conditions: (where) => where.and('r.job_id = parent.id') },
      jobIds,
      page,
    );
  }

  ofEvents(eventIds: readonly string[], page: PageArgs): Promise<Map<string, Page<RunRow>>> {
    const conditions = (where: { and(condition: string): void }): void => where.and('r.event_id = parent.id');
    return readChildLists(this.#db, { list: ofEvent, conditions }, eventIds, page);
  }

  /** All that carry one correlation id, oldest first. */
  ofCorrelation(correlationId: string, page: PageArgs): Promise<Page<RunRow>> {
    return readTraceList(this.#db, ofTrace, correlationId, page);
  }
}
