import type { Database } from '../db/pool.ts';
import type { Scope } from '../domain/credential.ts';
import { type ListDefinition, readList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { readById } from './query.ts';

export interface ApiTokenRow {
  id: string;
  name: string;
  scopes: Scope[];
  agents: string[] | null;
  jobs: string[] | null;
  topics: string[] | null;
  createdAt: Date;
  expiresAt: Date | null;
  lastUsedAt: Date | null;
  revokedAt: Date | null;
}

const columns = `
k.id, k.name, k.scopes, k.agents, k.jobs, k.topics, k.created_at as "createdAt", k.expires_at as "expiresAt",
k.last_used_at as "lastUsedAt", k.revoked_at as "revokedAt"`;
const from = 'runplane.api_tokens k';

const byIdSql = `select ${columns} from ${from} where k.id = any($1)`;

const list: ListDefinition = {
  name: 'api tokens',
  columns,
  from,
  key: [{ sql: 'k.id', type: 'uuid' }],
  descending: true,
};

export class ApiTokenQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, ApiTokenRow>> {
    return readById(this.#db, 'api-tokens-by-id', byIdSql, ids);
  }

  /** Newest first, revoked ones too. */
  list(page: PageArgs): Promise<Page<ApiTokenRow>> {
    return readList(this.#db, { list }, page);
  }
}
