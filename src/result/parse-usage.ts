import { checkJson, type Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { InvalidInputError } from '../domain/problems.ts';
import { parseInteger, parseOptionalName } from '../domain/text.ts';
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

export function parseUsage(
  inputs: readonly ModelUsageInput[] | null | undefined,
  field: string,
): ModelUsage[] {
  if ((inputs?.length ?? 0) > limits.batch) {
    throw new InvalidInputError(field, `${field} has more than ${limits.batch} entries.`);
  }
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
      requests: input.requests == null ? 1 : parseInteger(input.requests, `${at}.requests`, 0, 1_000_000),
      cost: parseCost(input.cost, `${at}.cost`),
      responseId: parseOptionalName(input.responseId, `${at}.responseId`),
      at: parseAt(input.at, `${at}.at`),
      raw: checkJson(input.raw ?? null, `${at}.raw`, { repair: true, maxBytes: limits.checkpointBytes })
        .value,
    };
  });
}

function parseAt(at: Date | null | undefined, field: string): Date | null {
  if (!at) return null;
  const year = at.getUTCFullYear();
  if (!(year >= 1970 && year <= 9999))
    throw new InvalidInputError(field, `${field} must be a time in the years 1970 to 9999.`);
  return at;
}

function parseCost(cost: string | null | undefined, field: string): string | null {
  if (cost === null || cost === undefined) return null;
  if (!/^\d{1,18}(\.\d{1,12})?$/.test(cost)) {
    throw new InvalidInputError(
      field,
      `${field} must be a decimal of at least 0 with at most 18 digits before and 12 after the point.`,
    );
  }
  return cost;
}
