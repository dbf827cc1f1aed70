import type { Debounce } from '../domain/debounce.ts';
import { digest, hashKey } from '../domain/digest.ts';
import { checkJson, isJsonObject, type JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { refuseTooMany } from '../domain/names.ts';
import { InvalidInputError } from '../domain/problems.ts';
import { parseTime } from '../domain/scalars.ts';
import {
  parseEstimate,
  parseMaxAttempts,
  parseOptionalPriority,
  parsePriority,
} from '../domain/task-fields.ts';
import { parseLabels, parseName, parseOptionalName } from '../domain/text.ts';
import type { DebounceInput, LaunchRunInput, LaunchStepInput } from './types.ts';

export interface IdempotencyKey {
  kind: 'launch' | 'event' | 'rerun';
  /** Keys of events are unique per topic. */
  scope: string;
  text: string;
  hash: Buffer;
  /** Of the input: the same key with another digest is a conflict. */
  digest: Buffer;
}

export interface StepOverride {
  estimatedTokens: number | null;
  priority: number | null;
  maxAttempts: number | null;
  serialKey: string | null;
}

/** A launch that passed every check that needs no database. */
export interface Launch {
  job: string;
  config: JsonObject;
  key: IdempotencyKey | null;
  correlationId: string | null;
  priority: number;
  customer: string | null;
  labels: Record<string, string>;
  estimatedTokens: number | null;
  availableAt: Date | null;
  serialKey: string | null;
  debounce: Debounce | null;
  steps: Map<string, StepOverride>;
}

/** Checks a launch; throws InvalidInputError. */
export function parseLaunch(input: LaunchRunInput): Launch {
  const launch = {
    job: parseName(input.job, 'job'),
    config: parseConfig(input.config ?? {}),
    correlationId: parseOptionalName(input.correlationId, 'correlationId'),
    priority: parsePriority(input.priority ?? 0, 'priority'),
    customer: parseOptionalName(input.customer, 'customer'),
    labels: parseLabels(input.labels, 'labels'),
    estimatedTokens: parseEstimate(input.estimatedTokens, 'estimatedTokens'),
    availableAt: parseTime(input.availableAt, 'availableAt'),
    serialKey: parseOptionalName(input.serialKey, 'serialKey'),
    debounce: input.debounce ? parseDebounce(input.debounce) : null,
    steps: parseSteps(input.steps ?? []),
  };
  if (launch.debounce && launch.availableAt) {
    throw new InvalidInputError(
      'availableAt',
      'availableAt and debounce both say when the run starts; give one of them.',
    );
  }
  const text = parseOptionalName(input.idempotencyKey, 'idempotencyKey');
  const key: IdempotencyKey | null =
    text === null
      ? null
      : {
          kind: 'launch',
          scope: '',
          text,
          hash: hashKey(text),
          digest: digest({
            ...launch,
            availableAt: launch.availableAt?.toISOString() ?? null,
            steps: Object.fromEntries(launch.steps),
          }),
        };
  return { ...launch, key };
}

/** Checks a config as far as that needs no job; throws InvalidInputError. */
export function parseConfig(config: unknown): JsonObject {
  if (!isJsonObject(config)) throw new InvalidInputError('config', 'config must be a JSON object.');
  return checkJson(config, 'config').value as JsonObject;
}

function parseDebounce(input: DebounceInput): Debounce {
  const { seconds, maxSeconds = null } = input;
  if (!(seconds > 0 && seconds <= limits.debounceSeconds)) {
    throw new InvalidInputError(
      'debounce.seconds',
      `debounce.seconds must be a number greater than 0, up to ${limits.debounceSeconds}.`,
    );
  }
  if (maxSeconds !== null && !(maxSeconds >= seconds && maxSeconds <= limits.debounceMaxSeconds)) {
    throw new InvalidInputError(
      'debounce.maxSeconds',
      `debounce.maxSeconds must be a number from debounce.seconds to ${limits.debounceMaxSeconds}.`,
    );
  }
  return { key: parseName(input.key, 'debounce.key'), seconds, maxSeconds, collect: input.collect ?? false };
}

function parseSteps(steps: readonly LaunchStepInput[]): Map<string, StepOverride> {
  refuseTooMany(steps, 'steps', limits.stepsOfJob);
  const overrides = new Map<string, StepOverride>();
  for (const [i, step] of steps.entries()) {
    const at = `steps[${i}]`;
    const name = parseName(step.step, `${at}.step`);
    if (overrides.has(name))
      throw new InvalidInputError(`${at}.step`, `${at}.step is ${name}, which is given twice in steps.`);
    overrides.set(name, {
      estimatedTokens: parseEstimate(step.estimatedTokens, `${at}.estimatedTokens`),
      priority: parseOptionalPriority(step.priority, `${at}.priority`),
      maxAttempts: parseMaxAttempts(step.maxAttempts, `${at}.maxAttempts`),
      serialKey: parseOptionalName(step.serialKey, `${at}.serialKey`),
    });
  }
  return overrides;
}
