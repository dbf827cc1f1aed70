import type { Queryable } from '../db/pool.ts';
import type { StepDefinition } from '../domain/job-definition.ts';
import type { Json } from '../domain/json.ts';
import { type ConfigValidator, compileConfigSchema } from './validate-config.ts';

/** A job's current version, ready to launch. */
export interface LaunchableJob {
  id: string;
  name: string;
  version: number;
  steps: StepDefinition[];
  validateConfig: ConfigValidator;
}

interface JobRow {
  id: string;
  name: string;
  version: number;
  steps: StepDefinition[];
  configSchema: Json;
}

const currentVersions = `
select j.id, j.name, j.version, v.steps, v.config_schema as "configSchema"
  from runplane.jobs j join runplane.job_versions v on v.job_id = j.id and v.version = j.version
 where j.enabled and (j.name = any($1) or j.id = any($2::uuid[]))`;

const oneVersion = `
select v.version, v.steps, v.config_schema as "configSchema" from runplane.job_versions v where v.job_id = $1 and v.version = $2`;

/** Which version is current is asked for each launch; a version never changes, so its compiled schema is kept. */
export class JobCatalog {
  /** By job: the version that was compiled last. */
  readonly #validators = new Map<string, { version: number; validator: ConfigValidator }>();

  /** The enabled ones of the jobs with these names or ids. */
  async load(tx: Queryable, names: readonly string[], ids: readonly string[]): Promise<LaunchableJob[]> {
    if (names.length === 0 && ids.length === 0) return [];
    const { rows } = await tx.query<JobRow>({
      name: 'current-jobs',
      text: currentVersions,
      values: [names, ids],
    });
    return rows.map(({ configSchema, ...job }) => ({
      ...job,
      validateConfig: this.#validator(job, configSchema),
    }));
  }

  /** An earlier version of a job. Asked for seldom, so it is not kept. */
  async loadVersion(tx: Queryable, job: LaunchableJob, version: number): Promise<LaunchableJob> {
    const { rows } = await tx.query<Pick<JobRow, 'version' | 'steps' | 'configSchema'>>({
      name: 'job-version',
      text: oneVersion,
      values: [job.id, version],
    });
    const [row] = rows;
    if (!row) throw new Error(`Version ${version} of job ${job.id} is gone.`);
    return { ...job, version, steps: row.steps, validateConfig: compileConfigSchema(row.configSchema) };
  }

  #validator({ id, version }: { id: string; version: number }, schema: Json): ConfigValidator {
    const known = this.#validators.get(id);
    if (known?.version === version) return known.validator;
    const validator = compileConfigSchema(schema);
    this.#validators.set(id, { version, validator });
    return validator;
  }
}
