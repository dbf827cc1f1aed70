import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { ConfigError, RunConfigValidationInvalid } from '../domain/problems.ts';
import { BudgetSpent, timeBound } from '../domain/time-bound.ts';

/** All errors of a config at once; none when it satisfies the schema. */
export type ConfigValidator = (config: JsonObject) => ConfigError[];

const options = { allErrors: true, strict: false, validateFormats: false };
/** Knows what a schema is. One for all: the schema of schemas takes longer to compile than any of them. */
const schemas = new Ajv2020(options);

/** Compiles a job's JSON Schema (2020-12); null accepts any object. Throws when it is none. */
export function compileConfigSchema(schema: Json): ConfigValidator {
  if (schema === null) return () => [];
  if (!schemas.validateSchema(schema as object | boolean))
    throw new Error(`schema is invalid: ${schemas.errorsText()}`);
  // By itself: what one job's schema calls itself concerns no other.
  const own = new Ajv2020({ ...options, validateSchema: false });
  const validate: ValidateFunction = own.compile(schema as object | boolean);
  return (config) => {
    try {
      if (timeBound(limits.schemaCheckMs, () => validate(config))) return [];
    } catch (error) {
      if (error instanceof BudgetSpent) throw error;
      // A pattern that backtracks for ever, or $refs that only some configs follow in a circle.
      const why = error instanceof RangeError ? 'its $refs lead in a circle' : (error as Error).message;
      return [
        {
          reason: 'CONSTRAINT_VIOLATED',
          path: [],
          message: `config cannot be checked by the job's schema: ${why}.`,
        },
      ];
    }
    return (validate.errors ?? []).slice(0, limits.configErrors).map(toConfigError);
  };
}

export const configInvalid = (job: string, errors: ConfigError[]): RunConfigValidationInvalid => ({
  kind: 'RunConfigValidationInvalid',
  message: `The config does not satisfy the schema of job ${job}: ${errors.map((e) => e.message).join(' ')}`,
  errors,
});

function toConfigError(error: ErrorObject): ConfigError {
  const path = error.instancePath
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
  const where = ['config', ...path].join('.');
  switch (error.keyword) {
    case 'required': {
      const field = String(error.params.missingProperty);
      return {
        reason: 'MISSING_REQUIRED_FIELD',
        path: [...path, field],
        message: `${where}.${field} is required.`,
      };
    }
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const field = String(error.params.additionalProperty ?? error.params.unevaluatedProperty);
      return {
        reason: 'FIELD_NOT_DEFINED',
        path: [...path, field],
        message: `${where}.${field} is not defined by the job.`,
      };
    }
    case 'type':
      return { reason: 'TYPE_MISMATCH', path, message: `${where} ${error.message}.` };
    default:
      return { reason: 'CONSTRAINT_VIOLATED', path, message: `${where} ${error.message}.` };
  }
}
