import { allDependencies, findCycle, type StepDefinition } from '../domain/job-definition.ts';
import { isJsonObject, type Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { parseNames, refuseDuplicates, refuseTooMany } from '../domain/names.ts';
import { collected, InvalidInputError } from '../domain/problems.ts';
import { parseMaxAttempts } from '../domain/task-fields.ts';
import { parseName, parseOptionalName } from '../domain/text.ts';
import { timeBound } from '../domain/time-bound.ts';
import { compileConfigSchema } from '../intake/validate-config.ts';
import { parseEach, parseJson, parseTemplate } from './parse-fields.ts';
import { readTemplate } from './template-syntax.ts';
import type { JobStepInput } from './types.ts';

/** A step as a user sees it: with its agent's name. */
export type StepSpec = Omit<StepDefinition, 'agentId'> & { agent: string };

/** What the template of a step's input sees. */
const seen = ['config', 'run', 'event', 'steps'];

export function parseSteps(inputs: readonly JobStepInput[]): StepSpec[] {
  if (inputs.length === 0)
    throw new InvalidInputError('steps', 'steps is empty; a job has at least one step.');
  refuseTooMany(inputs, 'steps', limits.stepsOfJob);
  const steps = collected(inputs.map((input, i) => () => parseStep(input, `steps[${i}]`)));
  const names = steps.map((step) => step.name);
  refuseDuplicates(names, 'steps');
  collected(steps.map((step, i) => () => refuseUnknown(step.dependsOn, names, `steps[${i}].dependsOn`)));
  const cycle = findCycle(steps);
  if (cycle)
    throw new InvalidInputError(
      'steps',
      `The steps depend on each other in a circle: ${cycle.join(' -> ')}.`,
    );
  collected(steps.map((step, i) => () => refuseUnseenSteps(step, steps, `steps[${i}].input`)));
  return steps;
}

const parseStep = (input: JobStepInput, at: string): StepSpec =>
  parseEach<StepSpec>({
    name: () => parseName(input.name, `${at}.name`),
    agent: () => parseName(input.agent, `${at}.agent`),
    dependsOn: () => parseNames(input.dependsOn, `${at}.dependsOn`, limits.stepsOfJob),
    when: () => input.when ?? 'DEPENDENCIES_COMPLETED',
    cancellable: () => input.cancellable ?? true,
    optional: () => input.optional ?? false,
    input: () => parseTemplate(input.input, `${at}.input`, seen),
    assetKey: () => parseOptionalName(input.assetKey, `${at}.assetKey`),
    readsAssetKeys: () => parseNames(input.readsAssetKeys, `${at}.readsAssetKeys`, limits.assetsOfStep),
    maxAttempts: () => parseMaxAttempts(input.maxAttempts, `${at}.maxAttempts`),
  });

function refuseUnknown(dependsOn: readonly string[], steps: readonly string[], field: string): void {
  const unknown = dependsOn.find((name) => !steps.includes(name));
  if (unknown !== undefined)
    throw new InvalidInputError(
      field,
      `${field} names ${JSON.stringify(unknown)}, which is no step of this job.`,
    );
}

/** What a template sees of a step that its own does not wait for would be left to chance. */
function refuseUnseenSteps(
  { name, dependsOn, input }: StepSpec,
  steps: readonly StepSpec[],
  field: string,
): void {
  const { mentions } = readTemplate(input);
  const waitsFor = allDependencies(dependsOn, steps);
  const unseen = mentions.find(
    (mention) => mention.name === 'steps' && mention.member !== null && !waitsFor.has(mention.member),
  );
  if (!unseen) return;
  const why = steps.some((step) => step.name === unseen.member)
    ? `which ${JSON.stringify(name)} does not depend on`
    : 'which is no step of this job';
  throw new InvalidInputError(field, `${field}${unseen.path} names steps.${unseen.member}, ${why}.`);
}

/** A schema that launches can be checked with: compiled once here, in the way that launches compile it. */
export function parseConfigSchema(value: unknown): Json {
  const field = 'configSchema';
  const schema = parseJson(value, field);
  // An asynchronous validator answers with a promise, which would let every config pass.
  if (isJsonObject(schema) && '$async' in schema)
    throw new InvalidInputError(field, `${field} must not use $async.`);
  try {
    // Endless $refs show when they are followed.
    const [fault] = timeBound(limits.schemaCompileMs, () => compileConfigSchema(schema)({})).filter(
      ({ message }) => message.startsWith('config cannot be checked'),
    );
    if (fault) throw new Error('its $refs lead in a circle, or checking takes too long');
  } catch (error) {
    throw new InvalidInputError(field, `${field} is no usable JSON Schema (2020-12): ${reasonOf(error)}.`);
  }
  return schema;
}

function reasonOf(error: unknown): string {
  if (error instanceof RangeError) return 'its $refs lead in a circle';
  return error instanceof Error ? error.message : String(error);
}
