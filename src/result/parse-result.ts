import { digestFields } from '../domain/digest.ts';
import { checkJson, type Json, repairText } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { refuseTooMany } from '../domain/names.ts';
import { InvalidInputError } from '../domain/problems.ts';
import type { ErrorKind } from '../domain/retry-policy.ts';
import { parseNumber } from '../domain/scalars.ts';
import { cutBytes, parseName, parseOptionalName } from '../domain/text.ts';
import { parseSpawn, type SpawnedTask } from './parse-spawn.ts';
import { type ModelUsage, parseUsage } from './parse-usage.ts';
import type { MaterializationInput, ReportResultInput } from './types.ts';

export interface ReportedError {
  code: string;
  message: string | null;
  kind: ErrorKind;
  retryAfterSeconds: number | null;
  throttle: string | null;
}
export interface Materialization {
  assetKey: string;
  partition: string | null;
  metadata: Json;
}

/** How a worker ends an attempt. */
export type ReportedEnd =
  | { status: 'FAILED'; error: ReportedError }
  | { status: 'COMPLETED'; error: null }
  | { status: 'CANCELLED' | 'RELEASED'; error: null };

/** What a worker reported of an attempt, checked and repaired. */
export type Report = ReportedEnd & {
  attemptId: string;
  output: Json;
  usage: ModelUsage[];
  confidence: number | null;
  traceId: string | null;
  externalRunId: string | null;
  materializations: Materialization[];
  /** Tasks that it asks for. */
  spawn: SpawnedTask[];
  sanitized: boolean;
  /** SHA-256 in hexadecimal. */
  digest: string;
  /** About the characters of JSON of all that. */
  size: number;
};

/** Checks a result; throws InvalidInputError. Text of models is repaired, everything else is refused. */
export function parseReport(
  input: Omit<ReportResultInput, 'attemptId' | 'leaseToken'>,
  attemptId: string,
): Report {
  const output = checkJson(input.output ?? null, 'output', {
    repair: true,
    maxBytes: limits.resultJsonBytes,
  });
  const end = parseEnd(input);
  const spawn = parseSpawn(input.spawn, input.status);
  const materializations = parseMaterializations(input.materializations ?? []);
  const content = {
    ...end.value,
    output: output.value,
    usage: parseUsage(input.usage, 'usage'),
    confidence: input.confidence == null ? null : parseNumber(input.confidence, 'confidence', 0, 1),
    traceId: parseTraceId(input.traceId),
    externalRunId: parseOptionalName(input.externalRunId, 'externalRunId'),
    materializations: materializations.value,
    spawn: spawn.value,
  };
  return {
    ...content,
    attemptId,
    sanitized: output.repaired || spawn.repaired || materializations.repaired || end.repaired,
    ...digestFields({
      ...content,
      usage: content.usage.map((u) => ({ ...u, at: u.at?.toISOString() ?? null })),
    }),
  };
}

function parseTraceId(given: string | null | undefined): string | null {
  if (given == null || /^(?!0{32})[\da-f]{32}$/.test(given)) return given ?? null;
  throw new InvalidInputError('traceId', 'traceId must be 32 hexadecimal digits in lower case, not all 0.');
}

/** A FAILED result without an error is one with the code FAILED. */
function parseEnd({ status, error: input }: Pick<ReportResultInput, 'status' | 'error'>): {
  value: ReportedEnd;
  repaired: boolean;
} {
  if (status !== 'FAILED') return { value: { status, error: null }, repaired: false };
  const message = input?.message ?? null;
  const repairedMessage = message === null ? null : repairText(message);
  return {
    value: {
      status,
      error: {
        code: input ? parseName(input.code, 'error.code') : 'FAILED',
        message: repairedMessage === null ? null : cutBytes(repairedMessage, limits.errorMessageBytes),
        kind: input?.kind ?? 'TRANSIENT',
        retryAfterSeconds:
          input?.retryAfterSeconds == null
            ? null
            : parseNumber(input.retryAfterSeconds, 'error.retryAfterSeconds', 0, limits.retryAfterSeconds),
        throttle: parseOptionalName(input?.throttle, 'error.throttle'),
      },
    },
    repaired: repairedMessage !== message,
  };
}

/** An attempt produces a partition of an asset once: of two, one would be lost. */
function parseMaterializations(inputs: readonly MaterializationInput[]): {
  value: Materialization[];
  repaired: boolean;
} {
  refuseTooMany(inputs, 'materializations', limits.batch);
  const seen = new Set<string>();
  let repaired = false;
  const value = inputs.map((input, i): Materialization => {
    const at = `materializations[${i}]`;
    const metadata = checkJson(input.metadata ?? null, `${at}.metadata`, {
      repair: true,
      maxBytes: limits.metadataBytes,
    });
    repaired ||= metadata.repaired;
    const assetKey = parseName(input.assetKey, `${at}.assetKey`);
    const partition = parseOptionalName(input.partition, `${at}.partition`);
    const identity = JSON.stringify([assetKey, partition]);
    if (seen.has(identity)) {
      throw new InvalidInputError(at, `${at} has the assetKey and partition of one before it.`);
    }
    seen.add(identity);
    return { assetKey, partition, metadata: metadata.value };
  });
  return { value, repaired };
}
