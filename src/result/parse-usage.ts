import { checkJson, type Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { refuseTooMany } from '../domain/names.ts';
import { parseDecimal, parseInteger, parseTime } from '../domain/scalars.ts';
import { parseOptionalName } from '../domain/text.ts';
import type { ModelUsageInput } from './types.ts';

/** Usage of one provider's answer in disjoint buckets; absent counts are null, never 0. */
export interface ModelUsage {
  model: string | null;
  provider: string | null;
  inputTokens: number | null;
  cacheReadTokens: number | null;
  cacheWriteTokens: number | null;
  cacheWrite1hTokens: number | null;
  outputTokens: number | null;
  reasoningTokens: number | null;
  requests: number;
  /** USD as exact decimal text; null is unpriced. */
  cost: string | null;
  responseId: string | null;
  at: Date | null;
  raw: Json;
}

/** Checks what an attempt used; throws InvalidInputError. */
export function parseUsage(
  inputs: readonly ModelUsageInput[] | null | undefined,
  field: string,
): ModelUsage[] {
  refuseTooMany(inputs ?? [], field, limits.batch);
  return (inputs ?? []).map((input, i) => {
    const at = `${field}[${i}]`;
    const tokens = (name: keyof ModelUsageInput): number | null => {
      const value = input[name];
      return typeof value === 'number'
        ? parseInteger(value, `${at}.${name}`, 0, Number.MAX_SAFE_INTEGER)
        : null;
    };
    return {
      model: parseOptionalName(input.model, `${at}.model`),
      provider: parseOptionalName(input.provider, `${at}.provider`),
      inputTokens: tokens('inputTokens'),
      cacheReadTokens: tokens('cacheReadTokens'),
      cacheWriteTokens: tokens('cacheWriteTokens'),
      cacheWrite1hTokens: tokens('cacheWrite1hTokens'),
      outputTokens: tokens('outputTokens'),
      reasoningTokens: tokens('reasoningTokens'),
      requests:
        input.requests == null
          ? 1
          : parseInteger(input.requests, `${at}.requests`, 0, limits.requestsOfUsage),
      cost: parseDecimal(input.cost, `${at}.cost`),
      responseId: parseOptionalName(input.responseId, `${at}.responseId`),
      at: parseTime(input.at, `${at}.at`),
      raw: checkJson(input.raw ?? null, `${at}.raw`, { repair: true, maxBytes: limits.checkpointBytes })
        .value,
    };
  });
}
