import { digestFields } from '../domain/digest.ts';
import { checkJson, type Json, repairText } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { refuseTooMany } from '../domain/names.ts';
import { InvalidInputError } from '../domain/problems.ts';
import type { ErrorKind } from '../domain/retry-policy.ts';
import { parseNumber } from '../domain/scalars.ts';
import type { ResultStatus } from '../domain/status.ts';
import { cutBytes, parseName, parseOptionalName } from '../domain/text.ts';
import { parseSpawn, type SpawnedTask } from './parse-spawn.ts';
import { type ModelUsage, parseUsage } from './parse-usage.ts';
import type { ExecutionErrorInput, MaterializationInput, ReportResultInput } from './types.ts';

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

/** What a worker reported of an attempt, checked and repaired. */
export interface Report {
  attemptId: string;
  status: ResultStatus;
  output: Json;
  error: ReportedError | null;
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
}

/** Checks a result; throws InvalidInputError. Text of models is repaired, everything else is refused. */
export function parseReport(
  input: Omit<ReportResultInput, 'attemptId' | 'leaseToken'>,
  attemptId: string,
): Report {
  const output = checkJson(input.output ?? null, 'output', {
    repair: true,
    maxBytes: limits.resultJsonBytes,
  });
  const error = input.status === 'FAILED' ? parseError(input.error) : null;
  const spawn = parseSpawn(input.spawn, input.status);
  const materializations = parseMaterializations(input.materializations ?? []);
  const content = {
    status: input.status,
    output: output.value,
    error: error?.value ?? null,
    usage: parseUsage(input.usage, 'usage'),
    confidence: input.confidence == null ? null : parseNumber(input.confidence, 'confidence', 0, 1),
    traceId: parseOptionalName(input.traceId, 'traceId'),
    externalRunId: parseOptionalName(input.externalRunId, 'externalRunId'),
    materializations: materializations.value,
    spawn: spawn.value,
  };
  return {
    ...content,
    attemptId,
    sanitized: output.repaired || spawn.repaired || materializations.repaired || (error?.repaired ?? false),
    ...digestFields({
      ...content,
      usage: content.usage.map((u) => ({ ...u, at: u.at?.toISOString() ?? null })),
    }),
  };
}

/** A FAILED result without an error is one with the code FAILED. */
function parseError(input: ExecutionErrorInput | null | undefined): {
  value: ReportedError;
  repaired: boolean;
} {
  const message = input?.message ?? null;
  const repairedMessage = message === null ? null : repairText(message);
  return {
    value: {
      code: input ? parseName(input.code, 'error.code') : 'FAILED',
      message: repairedMessage === null ? null : cutBytes(repairedMessage, limits.errorMessageBytes),
      kind: input?.kind ?? 'TRANSIENT',
      retryAfterSeconds:
        input?.retryAfterSeconds == null
          ? null
          : parseNumber(input.retryAfterSeconds, 'error.retryAfterSeconds', 0, limits.retryAfterSeconds),
      throttle: parseOptionalName(input?.throttle, 'error.throttle'),
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
