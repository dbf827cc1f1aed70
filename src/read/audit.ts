import type { Database } from '../db/pool.ts';
import { type ListDefinition, readList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { readById } from './query.ts';
import type { Where } from './where.ts';

export interface AuditRow {
  id: string;
  at: Date;
  actor: string;
  action: string;
  target: string;
  before: unknown;
  after: unknown;
  reason: string | null;
  requestId: string | null;
}

export interface AuditFilter {
  actors?: readonly string[] | null;
  actions?: readonly string[] | null;
  targets?: readonly string[] | null;
  after?: Date | null;
  before?: Date | null;
}

const columns = `
u.id, u.at, u.actor, u.action, u.target, u.before, u.after, u.reason, u.request_id as "requestId"`;
const from = 'runplane.audit_entries u';

const byIdSql = `select ${columns} from ${from} where u.id = any($1)`;

const list: ListDefinition = {
  name: 'audit entries',
  columns,
  from,
  key: [{ sql: 'u.id', type: 'uuid' }],
  descending: true,
};

export class AuditQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, AuditRow>> {
    return readById(this.#db, 'audit-entries-by-id', byIdSql, ids);
  }

  /** Newest first. */
  async list(filter: AuditFilter, page: PageArgs): Promise<Page<AuditRow>> {
    const conditions = (where: Where): void => {
      where.isOneOf('u.actor', filter.actors);
      where.isOneOf('u.action', filter.actions);
      where.isOneOf('u.target', filter.targets);
      where.between('u.at', filter.after, filter.before);
    };
    return readList(this.#db, { list, filter, conditions }, page);
  }
}
