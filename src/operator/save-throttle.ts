import { parseOptionalInteger } from '../domain/scalars.ts';
import { fillWindow } from './fill-window.sql.ts';
import { maxInteger, parseEach } from './parse-fields.ts';
import { readRow } from './rows.ts';
import type { ObjectKind } from './save.ts';
import type { SaveThrottleInput } from './types.ts';

interface ThrottleSpec {
  maxConcurrentTasks: number | null;
  maxTokensPerMinute: number | null;
  maxRequestsPerMinute: number | null;
  maxRequestsPerSecond: number | null;
}

const parseLimit = (input: SaveThrottleInput, name: keyof ThrottleSpec): number | null =>
  parseOptionalInteger(input[name], name, 0, maxInteger);

/** Claims lock the throttle's row too, so none commits above a limit that was lowered before. */
export const throttleKind: ObjectKind<SaveThrottleInput, ThrottleSpec> = {
  noun: 'throttle',
  parse: (input) =>
    parseEach<ThrottleSpec>({
      maxConcurrentTasks: () => parseLimit(input, 'maxConcurrentTasks'),
      maxTokensPerMinute: () => parseLimit(input, 'maxTokensPerMinute'),
      maxRequestsPerMinute: () => parseLimit(input, 'maxRequestsPerMinute'),
      maxRequestsPerSecond: () => parseLimit(input, 'maxRequestsPerSecond'),
    }),
  references: () => [],
  read: (tx, id) =>
    readRow(
      tx,
      `select max_concurrent_tasks as "maxConcurrentTasks", max_tokens_per_minute as "maxTokensPerMinute",
              max_requests_per_minute as "maxRequestsPerMinute", max_requests_per_second as "maxRequestsPerSecond"
         from runplane.throttles where id = $1`,
      id,
    ),
  columns: (spec) => ({
    max_concurrent_tasks: spec.maxConcurrentTasks,
    max_tokens_per_minute: spec.maxTokensPerMinute,
    max_requests_per_minute: spec.maxRequestsPerMinute,
    max_requests_per_second: spec.maxRequestsPerSecond,
  }),
  // One that is new has no agents yet.
  writeParts: async (tx, object, spec, _idOf, before) => {
    if (!before) return;
    const tokens = countsTokens(spec) && !countsTokens(before);
    const requests = countsRequests(spec) && !countsRequests(before);
    if (tokens || requests) await fillWindow(tx, { throttleId: object.id, agentIds: null, tokens, requests });
  },
};

const countsTokens = (spec: ThrottleSpec): boolean => spec.maxTokensPerMinute !== null;
const countsRequests = (spec: ThrottleSpec): boolean =>
  spec.maxRequestsPerMinute !== null || spec.maxRequestsPerSecond !== null;
