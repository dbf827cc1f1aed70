import type { Database } from '../db/pool.ts';
import type { StepDefinition } from '../domain/job-definition.ts';
import { type ListDefinition, readList } from './list.ts';
import type { Page, PageArgs } from './page.ts';
import { readById, readRows } from './query.ts';

export interface JobRow {
  id: string;
  name: string;
  description: string | null;
  configSchema: unknown;
  steps: StepDefinition[];
  enabled: boolean;
  version: number;
}

const columns = `
j.id, j.name, j.description, v.config_schema as "configSchema", v.steps, j.enabled, j.version`;
const from = 'runplane.jobs j join runplane.job_versions v on v.job_id = j.id and v.version = j.version';

const byIdSql = `select ${columns} from ${from} where j.id = any($1)`;
const byNameSql = `select ${columns} from ${from} where j.name = $1`;
const stepsSql = `
select v.steps, v.job_id || ' ' || v.version as key
  from unnest($1::uuid[], $2::int[]) k(job_id, version) join runplane.job_versions v on v.job_id = k.job_id and v.version = k.version`;

const list: ListDefinition = {
  name: 'jobs',
  columns,
  from,
  key: [{ sql: 'j.id', type: 'uuid' }],
  descending: false,
};

export class JobQuestions {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  byIds(ids: readonly string[]): Promise<Map<string, JobRow>> {
    return readById(this.#db, 'jobs-by-id', byIdSql, ids);
  }

  async byName(name: string): Promise<JobRow | null> {
    const rows = await readRows<JobRow>(this.#db, { name: 'job-by-name', text: byNameSql, values: [name] });
    return rows[0] ?? null;
  }

  /** Steps of versions of jobs; keys are job id, space, version. */
  async stepsOfVersions(keys: readonly string[]): Promise<Map<string, StepDefinition[]>> {
    const parts = keys.map((key) => key.split(' '));
    const values = [parts.map(([id]) => id), parts.map(([, version]) => Number(version))];
    const statement = { name: 'steps-of-versions', text: stepsSql, values };
    const rows = await readRows<{ key: string; steps: StepDefinition[] }>(this.#db, statement);
    return new Map(rows.map(({ key, steps }) => [key, steps]));
  }

  async list(page: PageArgs): Promise<Page<JobRow>> {
    return readList(this.#db, { list }, page);
  }
}
