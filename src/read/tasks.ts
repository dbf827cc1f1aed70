import type { Database } from '../db/pool.ts';
import { isDelayedRowOf, memberOf } from '../db/task-rows.ts';
import type { ErrorKind } from '../domain/retry-policy.ts';
import type { RetryFacts } from '../domain/retry-refusal.ts';
import { isTerminal, type TaskStatus } from '../domain/status.ts';
import { ReadError } from './errors.ts';
import { type ListDefinition, readChildLists, readList, readTraceList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { readById, readRows } from './query.ts';
import { retryFactsSql } from './retry-facts.sql.ts';
import { runsOfCorrelation } from './run-filter.ts';
import { addTaskFilter, type TaskFilter, taskStatus, tasksFrom, tasksInOrder } from './task-filter.ts';
import { tasksOfPage } from './tasks-of-page.ts';
import type { Where } from './where.ts';

/** A task without its payloads. */
export interface TaskRow {
  id: string;
  runId: string;
  step: string;
  agentId: string;
  queueId: string;
  status: TaskStatus;
  priority: number;
  serialKey: string | null;
  labels: Record<string, string>;
  customer: string | null;
  correlationId: string;
  errorCode: string | null;
  errorKind: ErrorKind | null;
  errorMessage: string | null;
  confidence: number | null;
  progress: number | null;
  estimatedTokens: number | null;
  maxAttempts: number;
  parentTaskId: string | null;
  takenOverFrom: string | null;
  availableAt: Date;
  createdAt: Date;
  cancelRequestedAt: Date | null;
  startedAt: Date | null;
  finishedAt: Date | null;
}

export interface TaskPayload {
  id: string;
  input: unknown;
  output: unknown;
}

export interface AttemptCounts {
  id: string;
  /** The running attempt included. */
  attemptCount: number;
  /** Those that count, since an operator's last retry. */
  attemptsUsed: number;
}

export type TaskOrder =
  | 'CREATED_DESC'
  | 'CREATED_ASC'
  | 'AVAILABLE_ASC'
  | 'FINISHED_DESC'
  | 'PRIORITY_DESC'
  | 'DURATION_DESC'
  | 'COST_DESC';

const startedAt = `(select coalesce(min(x.started_at), l.started_at) from runplane.attempts x where x.task_id = t.id and x.number = 1)`;

const columns = `
t.id, t.run_id as "runId", t.step, t.agent_id as "agentId", a.queue_id as "queueId", ${taskStatus} as status, t.priority,
t.serial_key as "serialKey", coalesce(t.labels, r.labels) as labels, r.customer, r.correlation_id as "correlationId", t.error_code as "errorCode",
t.error_kind as "errorKind", t.error_message as "errorMessage", t.confidence,
(select p.progress from runplane.task_progress p where p.task_id = t.id) as progress, t.estimated_tokens as "estimatedTokens",
coalesce(t.max_attempts, (a.retry_policy ->> 'maxAttempts')::int) as "maxAttempts",
t.parent_task_id as "parentTaskId", t.taken_over_from as "takenOverFrom", t.available_at as "availableAt", t.created_at as "createdAt",
t.cancel_requested_at as "cancelRequestedAt", ${startedAt} as "startedAt",
t.finished_at as "finishedAt"`;

const byIdSql = `select ${columns} from ${tasksFrom} where t.id = any($1)`;

// Null stands for the run's config, but for a step of the job with a template that was not rendered (yet).
const payloadSql = `
select t.id, t.output, coalesce(t.input, case when t.parent_task_id is not null or not exists (
         select from runplane.job_versions v cross join lateral jsonb_array_elements(v.steps) s(step)
          where v.job_id = r.job_id and v.version = r.job_version and s.step ->> 'name' = t.step
            and s.step -> 'input' <> 'null'::jsonb) then r.config end) as input
  from runplane.tasks t join runplane.runs r on r.id = t.run_id where t.id = any($1)`;

const attemptCountsSql = `
select t.id, (count(x.id) + count(distinct l.attempt_id))::int as "attemptCount",
       (count(x.id) filter (where x.counted and x.number > t.attempts_forgiven))::int as "attemptsUsed"
  from runplane.tasks t
  left join runplane.leases l on l.task_id = t.id
  left join runplane.attempts x on x.task_id = t.id
 where t.id = any($1) group by t.id`;

const delayedSql = `
select t.id from runplane.tasks t join runplane.delayed_tasks d on ${isDelayedRowOf('d', 't')}
 where t.id = any($1)`;

// The tasks that a run was launched with are its first ones, so the look-up in the order of creation ends soon.
const ofStepSql = `
select ${columns}, k.run_id || ' ' || k.step as key
  from unnest($1::uuid[], $2::text[]) k(run_id, step)
 cross join lateral (
   select o.id from runplane.tasks o where o.run_id = k.run_id and o.step = k.step and o.parent_task_id is null
    order by o.id limit 1) own
  join ${tasksFrom} on t.id = own.id`;

const id = { sql: 't.id', type: 'uuid' } as const;
const byTask = (table: string, column: string) =>
  `coalesce((select sum(x.${column}) from runplane.${table} x where x.task_id = t.id), 0)`;
const duration = `(extract(epoch from t.finished_at - coalesce(${startedAt}, t.finished_at)) * 1000)::bigint`;

const list = (name: string, descending: boolean, ...key: ListDefinition['key']): ListDefinition => ({
  name: `tasks ${name}`,
  columns,
  from: tasksFrom,
  key: [...key, id],
  descending,
});

const orders: Record<TaskOrder, ListDefinition> = {
  CREATED_DESC: list('CREATED_DESC', true),
  CREATED_ASC: list('CREATED_ASC', false),
  AVAILABLE_ASC: list('AVAILABLE_ASC', false, { sql: 't.available_at', type: 'time' }),
  // Those that are not finished come last.
  FINISHED_DESC: list('FINISHED_DESC', true, { sql: "coalesce(t.finished_at, 'epoch')", type: 'time' }),
  PRIORITY_DESC: list('PRIORITY_DESC', false, { sql: '-t.priority', type: 'integer' }),
  DURATION_DESC: list('DURATION_DESC', true, { sql: duration, type: 'integer' }),
  COST_DESC: list('COST_DESC', true, {
    sql: `${byTask('usage', 'llm_cost')} + ${byTask('attempts', 'compute_cost')}`,
    type: 'decimal',
  }),
};

const children = (name: string, condition: string): ListDefinition => ({
  ...orders.CREATED_ASC,
  name: `tasks ${name}`,
  from: `(select p.* from runplane.tasks p where p.id = parent.id) p join ${tasksFrom} on ${condition}`,
});
const ofRun: ListDefinition = { ...orders.CREATED_ASC, name: 'tasks of run' };
const dependencies = children('dependencies', `t.run_id = p.run_id and ${memberOf('t')} && p.depends_on`);
const ofTrace: ListDefinition = {
  ...list('of trace', false, { sql: 't.created_at', type: 'time' }),
  from: `${runsOfCorrelation}
  cross join lateral (select y.* from runplane.tasks y where y.run_id = r.id and y.deleted_at is null offset 0) t
  join runplane.agents a on a.id = t.agent_id
  left join lateral (select y.* from runplane.leases y where y.task_id = t.id offset 0) l on true`,
};
const spawned = children('children', 't.parent_task_id = p.id');

export class TaskQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, TaskRow>> {
    return readById(this.#db, 'tasks-by-id', byIdSql, ids);
  }

  payloads(ids: readonly string[]): Promise<Map<string, TaskPayload>> {
    return readById(this.#db, 'task-payloads', payloadSql, ids);
  }

  attemptCounts(ids: readonly string[]): Promise<Map<string, AttemptCounts>> {
    return readById(this.#db, 'attempt-counts', attemptCountsSql, ids);
  }

  /** Those that wait for a time: scheduled, or backing off. */
  delayed(ids: readonly string[]): Promise<Map<string, { id: string }>> {
    return readById(this.#db, 'delayed-tasks', delayedSql, ids);
  }

  /** What decides whether they can be retried, of failed and cancelled ones. */
  retryFacts(ids: readonly string[]): Promise<Map<string, RetryFacts & { id: string }>> {
    return readById(this.#db, 'retry-facts', retryFactsSql, ids);
  }

  /** The job's own task of each run and step; keys are run id, space, step. */
  async ofSteps(keys: readonly string[]): Promise<Map<string, TaskRow>> {
    const runs = keys.map((key) => key.slice(0, key.indexOf(' ')));
    const steps = keys.map((key) => key.slice(key.indexOf(' ') + 1));
    const statement = { name: 'tasks-of-steps', text: ofStepSql, values: [runs, steps] };
    const rows = await readRows<TaskRow & { key: string }>(this.#db, statement);
    return new Map(rows.map(({ key, ...task }) => [key, task]));
  }

  async list(filter: TaskFilter, order: TaskOrder, page: PageArgs): Promise<Page<TaskRow>> {
    const finished = filter.statuses != null && filter.statuses.every(isTerminal);
    if ((order === 'DURATION_DESC' || order === 'COST_DESC') && !finished) {
      const message = `${order} needs a filter whose statuses are only COMPLETED, FAILED or CANCELLED.`;
      throw new ReadError('BAD_USER_INPUT', message, 'orderBy');
    }
    const { conditions, ...source } = await tasksOfPage(this.#db, filter, order.startsWith('CREATED'));
    return readList(this.#db, { list: { ...orders[order], ...source }, filter, conditions }, page);
  }

  /** Tasks of runs, in the order of their steps. */
  ofRuns(runIds: readonly string[], filter: TaskFilter, page: PageArgs): Promise<Map<string, Page<TaskRow>>> {
    const { waitsFor, ...source } = tasksInOrder(filter);
    const conditions = (where: Where): void => {
      where.and('t.run_id = parent.id');
      addTaskFilter(where, filter, waitsFor);
    };
    const list = { ...ofRun, ...source };
    return readChildLists(this.#db, { list, filter, conditions }, runIds, page);
  }

  dependenciesOf(taskIds: readonly string[], page: PageArgs): Promise<Map<string, Page<TaskRow>>> {
    return readChildLists(this.#db, { list: dependencies }, taskIds, page);
  }

  childrenOf(taskIds: readonly string[], page: PageArgs): Promise<Map<string, Page<TaskRow>>> {
    return readChildLists(this.#db, { list: spawned }, taskIds, page);
  }

  /** All that carry one correlation id, oldest first. */
  ofCorrelation(correlationId: string, page: PageArgs): Promise<Page<TaskRow>> {
    return readTraceList(this.#db, ofTrace, correlationId, page);
  }
}
