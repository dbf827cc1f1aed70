import type { StepCondition } from '../domain/job-definition.ts';
import { checkJson, type Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { parseNames, refuseTooMany } from '../domain/names.ts';
import { InvalidInputError } from '../domain/problems.ts';
import { parseTime } from '../domain/scalars.ts';
import type { ResultStatus } from '../domain/status.ts';
import { parseEstimate, parseMaxAttempts, parseOptionalPriority } from '../domain/task-fields.ts';
import { parseLabels, parseName, parseOptionalName } from '../domain/text.ts';
import type { SpawnTaskInput } from './types.ts';

/** A task that a result asks for, as far as it can be checked without the run. */
export interface SpawnedTask {
  step: string;
  agent: string;
  /** Null: the run's config. */
  input: Json;
  dependsOn: string[];
  when: StepCondition;
  optional: boolean;
  /** Null: that of the task that spawns it. */
  priority: number | null;
  estimatedTokens: number | null;
  /** Null: the agent's retry policy. */
  maxAttempts: number | null;
  serialKey: string | null;
  /** Its own, beside the run's. */
  labels: Record<string, string>;
  /** ISO 8601; null is at once. */
  availableAt: string | null;
}

/** Checks what a result spawns; throws InvalidInputError. */
export function parseSpawn(
  inputs: readonly SpawnTaskInput[] | null | undefined,
  status: ResultStatus,
): { value: SpawnedTask[]; repaired: boolean } {
  if (!inputs || inputs.length === 0) return { value: [], repaired: false };
  if (status !== 'COMPLETED') {
    throw new InvalidInputError(
      'spawn',
      `spawn needs the status COMPLETED; a ${status} result spawns nothing.`,
    );
  }
  refuseTooMany(inputs, 'spawn', limits.spawnedByResult);
  let repaired = false;
  const value = inputs.map((input, i): SpawnedTask => {
    const at = `spawn[${i}]`;
    // Inputs of tasks are text of models as often as outputs are.
    const taskInput = checkJson(input.input ?? null, `${at}.input`, { repair: true });
    repaired ||= taskInput.repaired;
    return {
      step: parseName(input.step, `${at}.step`),
      agent: parseName(input.agent, `${at}.agent`),
      input: taskInput.value,
      dependsOn: parseNames(input.dependsOn, `${at}.dependsOn`, limits.stepsOfJob),
      when: input.when ?? 'DEPENDENCIES_COMPLETED',
      optional: input.optional ?? false,
      priority: parseOptionalPriority(input.priority, `${at}.priority`),
      estimatedTokens: parseEstimate(input.estimatedTokens, `${at}.estimatedTokens`),
      maxAttempts: parseMaxAttempts(input.maxAttempts, `${at}.maxAttempts`),
      serialKey: parseOptionalName(input.serialKey, `${at}.serialKey`),
      labels: parseLabels(input.labels, `${at}.labels`),
      availableAt: parseTime(input.availableAt, `${at}.availableAt`)?.toISOString() ?? null,
    };
  });
  return { value, repaired };
}
