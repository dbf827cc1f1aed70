import type { Database } from '../db/pool.ts';
import type { ErrorKind } from '../domain/retry-policy.ts';
import { type ListDefinition, readList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { readById, readRows } from './query.ts';
import type { Where } from './where.ts';

export interface DeadLetterRow {
  id: string;
  taskId: string;
  agentId: string;
  scope: string;
  scopeId: string | null;
  errorCode: string;
  errorKind: ErrorKind;
  errorMessage: string | null;
  failCount: number;
  failedAt: Date;
  replayedAt: Date | null;
}

/** Ids are UUIDs. */
export interface DeadLetterFilter {
  ids?: readonly string[] | null;
  jobs?: readonly string[] | null;
  queues?: readonly string[] | null;
  agents?: readonly string[] | null;
  scopes?: readonly string[] | null;
  scopeIds?: readonly string[] | null;
  errorCodes?: readonly string[] | null;
  replayed?: boolean | null;
  failedAfter?: Date | null;
  failedBefore?: Date | null;
}

const columns = `
d.id, d.task_id as "taskId", d.agent_id as "agentId", d.scope, d.scope_id as "scopeId", d.error_code as "errorCode",
d.error_kind as "errorKind", d.error_message as "errorMessage", d.fail_count as "failCount", d.failed_at as "failedAt",
d.replayed_at as "replayedAt"`;
/** Dead letters with everything that a filter speaks of. */
export const deadLettersFrom = `runplane.dead_letters d
  join runplane.agents a on a.id = d.agent_id
  join runplane.queues q on q.id = a.queue_id
  join runplane.runs r on r.id = d.run_id
  join runplane.jobs j on j.id = r.job_id`;

const byIdSql = `select ${columns} from runplane.dead_letters d where d.id = any($1)`;
const ofTasksSql = `select ${columns} from runplane.dead_letters d where d.task_id = any($1)`;

const list: ListDefinition = {
  name: 'dead letters',
  columns,
  from: deadLettersFrom,
  key: [{ sql: 'd.id', type: 'uuid' }],
  descending: true,
};

export function addDeadLetterFilter(where: Where, filter: DeadLetterFilter): void {
  where.isOneOf('d.id', filter.ids, 'uuid');
  where.isOneOf('j.name', filter.jobs);
  where.isOneOf('q.name', filter.queues);
  where.isOneOf('a.name', filter.agents);
  where.isOneOf('d.scope', filter.scopes);
  where.isOneOf('d.scope_id', filter.scopeIds);
  where.isOneOf('d.error_code', filter.errorCodes);
  where.equals('(d.replayed_at is not null)', filter.replayed);
  where.between('d.failed_at', filter.failedAfter, filter.failedBefore);
}

export class DeadLetterQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, DeadLetterRow>> {
    return readById(this.#db, 'dead-letters-by-id', byIdSql, ids);
  }

  /** By the task's id; a task has at most one. */
  async ofTasks(taskIds: readonly string[]): Promise<Map<string, DeadLetterRow>> {
    const statement = { name: 'dead-letters-of-tasks', text: ofTasksSql, values: [taskIds] };
    const rows = await readRows<DeadLetterRow>(this.#db, statement);
    return new Map(rows.map((row) => [row.taskId, row]));
  }

  /** Newest first. */
  async list(filter: DeadLetterFilter, page: PageArgs): Promise<Page<DeadLetterRow>> {
    return readList(
      this.#db,
      { list, filter, conditions: (where) => addDeadLetterFilter(where, filter) },
      page,
    );
  }
}
