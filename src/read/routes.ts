import type { Database } from '../db/pool.ts';
import { topicMatches } from '../domain/topic.ts';
import { type ListDefinition, readList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { groupRows, readById, readRows } from './query.ts';
import type { Where } from './where.ts';

export interface RouteRow {
  id: string;
  name: string;
  topic: string;
  jobId: string;
  config: unknown;
  customer: unknown;
  labels: unknown;
  serialKey: unknown;
  estimatedTokens: unknown;
  priority: number;
  enabled: boolean;
  version: number;
}

const columns = `
o.id, o.name, o.topic, o.job_id as "jobId", o.config, o.customer, o.labels, o.serial_key as "serialKey",
o.estimated_tokens as "estimatedTokens", o.priority, o.enabled, o.version`;
const from = 'runplane.routes o';

const byIdSql = `select ${columns} from ${from} where o.id = any($1)`;
const ofJobsSql = `select ${columns} from ${from} where o.job_id = any($1) order by o.name`;
const topicsSql = 'select distinct topic from runplane.routes';

const list: ListDefinition = {
  name: 'routes',
  columns,
  from,
  key: [{ sql: 'o.id', type: 'uuid' }],
  descending: false,
};

export class RouteQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, RouteRow>> {
    return readById(this.#db, 'routes-by-id', byIdSql, ids);
  }

  /** By name. */
  async ofJobs(jobIds: readonly string[]): Promise<Map<string, RouteRow[]>> {
    const rows = await readRows<RouteRow>(this.#db, {
      name: 'routes-of-jobs',
      text: ofJobsSql,
      values: [jobIds],
    });
    return groupRows<RouteRow>(jobIds, rows, (row) => row.jobId);
  }

  /** All, or those whose pattern matches a topic. */
  async list(topic: string | null, page: PageArgs): Promise<Page<RouteRow>> {
    const patterns = topic === null ? null : await this.#matchingPatterns(topic);
    const conditions = (where: Where): void => where.isOneOf('o.topic', patterns);
    return readList(this.#db, { list, filter: { topic }, conditions }, page);
  }

  // The rule of matching is code, so that there is only one of it.
  async #matchingPatterns(topic: string): Promise<string[]> {
    const rows = await readRows<{ topic: string }>(this.#db, { name: 'topics-of-routes', text: topicsSql });
    return rows.map((row) => row.topic).filter((pattern) => topicMatches(pattern, topic));
  }
}
