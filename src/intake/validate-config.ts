import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Json, JsonObject } from '../domain/json.ts';
import type { ConfigError } from '../domain/problems.ts';

/** All errors of a config at once; none when it satisfies the schema. */
export type ConfigValidator = (config: JsonObject) => ConfigError[];

/** Compiles a job's JSON Schema (2020-12); null accepts any object. */
export function compileConfigSchema(schema: Json): ConfigValidator {
  if (schema === null) return () => [];
  const validate: ValidateFunction = new Ajv2020({
    allErrors: true,
    strict: false,
    validateFormats: false,
  }).compile(schema as object | boolean);
  return (config) => (validate(config) ? [] : (validate.errors ?? []).map(toConfigError));
}

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
