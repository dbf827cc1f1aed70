import type { Database } from '../db/pool.ts';
import type { ErrorKind } from '../domain/retry-policy.ts';
import type { AttemptStatus } from '../domain/status.ts';
import { type ListDefinition, readChildLists, readTraceList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { readById } from './query.ts';
import { runsOfCorrelation } from './run-filter.ts';

export interface AttemptRow {
  id: string;
  taskId: string;
  number: number;
  status: AttemptStatus;
  counted: boolean;
  workerId: string;
  externalRunId: string | null;
  traceId: string | null;
  errorCode: string | null;
  errorKind: ErrorKind | null;
  errorMessage: string | null;
  late: boolean;
  sanitized: boolean;
  startedAt: Date;
  leaseExpiresAt: Date | null;
  finishedAt: Date | null;
}

// Where its worker told of none, it was given the one of its run: whoever asked for it, else the event, else itself.
const traceOfRun = `(
  select coalesce(encode(substr(o.trace_context, 1, 16), 'hex'), replace(coalesce(o.event_id, o.id)::text, '-', ''))
    from runplane.runs o where o.id = x.run_id)`;

const columns = `
x.id, x.task_id as "taskId", x.number, x.status, x.counted, x.worker_id as "workerId", x.external_run_id as "externalRunId",
coalesce(x.trace_id, ${traceOfRun}) as "traceId", x.error_code as "errorCode", x.error_kind as "errorKind",
x.error_message as "errorMessage", x.late,
x.sanitized or coalesce((select c.sanitized from runplane.attempt_event_counts c where c.attempt_id = x.id), false) as sanitized, x.started_at as "startedAt", x.expires_at as "leaseExpiresAt",
x.finished_at as "finishedAt"`;

// A running attempt is its lease. Nothing is spent while it runs. Attempts of a deleted task are hidden with it; that is
// asked by key for each, so that no plan begins with all tasks.
const allAttempts = `
(select a.id, a.task_id, a.run_id, a.number, a.status::text, a.counted, a.worker_id, a.external_run_id, a.trace_id, a.error_code,
        a.error_kind, a.error_message, a.late, a.sanitized, a.started_at, null::timestamptz as expires_at,
        a.finished_at
   from runplane.attempts a where (select t.deleted_at from runplane.tasks t where t.id = a.task_id) is null
 union all
 select l.attempt_id, l.task_id, l.run_id, l.number, 'RUNNING', false, l.worker_id, null, null, null, null, null, false, false,
        l.started_at, l.expires_at, null
   from runplane.leases l)`;

const byIdSql = `select ${columns} from ${allAttempts} x where x.id = any($1)`;

const ofTask: ListDefinition = {
  name: 'attempts of task',
  columns,
  from: `${allAttempts} x`,
  key: [{ sql: 'x.number', type: 'integer' }],
  descending: false,
};
const ofTrace: ListDefinition = {
  name: 'attempts of trace',
  columns,
  from: `${runsOfCorrelation}
  cross join lateral (select y.id from runplane.tasks y where y.run_id = r.id and y.deleted_at is null offset 0) t
  cross join lateral (select y.* from ${allAttempts} y where y.task_id = t.id offset 0) x`,
  key: [
    { sql: 'x.started_at', type: 'time' },
    { sql: 'x.id', type: 'uuid' },
  ],
  descending: false,
};

export class AttemptQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, AttemptRow>> {
    return readById(this.#db, 'attempts-by-id', byIdSql, ids);
  }

  /** In the order of their numbers. */
  ofTasks(taskIds: readonly string[], page: PageArgs): Promise<Map<string, Page<AttemptRow>>> {
    return readChildLists(
      this.#db,
      { list: ofTask, conditions: (where) => where.and('x.task_id = parent.id') },
      taskIds,
      page,
    );
  }

  /** All that carry one correlation id, oldest first. */
  ofCorrelation(correlationId: string, page: PageArgs): Promise<Page<AttemptRow>> {
    return readTraceList(this.#db, ofTrace, correlationId, page);
  }
}
