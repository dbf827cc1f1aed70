import { ensureAssets } from '../db/ensure-assets.sql.ts';
import type { Queryable } from '../db/pool.ts';
import type { StepDefinition } from '../domain/job-definition.ts';
import type { Json } from '../domain/json.ts';
import { asJson } from './audit.ts';
import { parseEach, parseOptionalText } from './parse-fields.ts';
import { parseConfigSchema, parseSteps, type StepSpec } from './parse-job.ts';
import { type IdOf, readRow } from './rows.ts';
import type { Identity, ObjectKind } from './save.ts';
import type { SaveJobInput } from './types.ts';

export interface JobSpec {
  description: string | null;
  configSchema: Json;
  steps: StepSpec[];
  enabled: boolean;
}

export const jobKind: ObjectKind<SaveJobInput, JobSpec> = {
  noun: 'job',
  parse: (input) =>
    parseEach<JobSpec>({
      description: () => parseOptionalText(input.description, 'description'),
      configSchema: () => parseConfigSchema(input.configSchema),
      steps: () => parseSteps(input.steps),
      enabled: () => input.enabled ?? true,
    }),

  references: (spec) =>
    spec.steps.map(({ agent }, i) => ({ noun: 'agent', name: agent, field: `steps[${i}].agent` })),

  read: async (tx, id) => {
    const { steps, ...job } = await readRow<Omit<JobSpec, 'steps'> & { steps: StepDefinition[] }>(
      tx,
      `select j.description, v.config_schema as "configSchema", v.steps, j.enabled
         from runplane.jobs j join runplane.job_versions v on v.job_id = j.id and v.version = j.version
        where j.id = $1`,
      id,
    );
    const { rows } = await tx.query<{ id: string; name: string }>({
      text: 'select id, name from runplane.agents where id = any($1)',
      values: [steps.map((step) => step.agentId)],
    });
    const names = new Map(rows.map((agent) => [agent.id, agent.name]));
    return {
      ...job,
      steps: steps.map(({ agentId, ...step }) => ({ ...step, agent: names.get(agentId) ?? agentId })),
    };
  },

  columns: (spec) => ({ description: spec.description, enabled: spec.enabled }),

  writeParts: keepVersion,
  settle: (tx, saved) =>
    ensureAssets(
      tx,
      saved.flatMap(({ spec }) => assetKeysOf(spec.steps)),
    ),
};

async function keepVersion(tx: Queryable, object: Identity, spec: JobSpec, idOf: IdOf): Promise<void> {
  const steps = spec.steps.map(({ agent, ...step }) => ({ ...step, agentId: idOf('agent', agent) }));
  await tx.query({
    text: 'insert into runplane.job_versions (job_id, version, config_schema, steps) values ($1, $2, $3, $4)',
    values: [object.id, object.version, asJson(spec.configSchema), asJson(steps)],
  });
}

const assetKeysOf = (steps: readonly StepSpec[]): string[] =>
  steps.flatMap((step) => [...(step.assetKey === null ? [] : [step.assetKey]), ...step.readsAssetKeys]);
