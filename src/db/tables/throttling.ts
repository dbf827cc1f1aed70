import { bigint, doublePrecision, index, integer } from 'drizzle-orm/pg-core';
import { at, count, id, runplane } from './types.ts';

/**
 * What was used of throttles that limit tokens or requests, as long as a limit can count it. Only added to: a sum that
 * every claim and every result wrote would make them wait for each other.
 */
export const throttleUse = runplane.table(
  'throttle_use',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    throttleId: id('throttle_id').notNull(),
    at: at('at').notNull(),
    tokens: count('tokens').notNull(),
    requests: integer('requests').notNull(),
  },
  (t) => [index('throttle_use_by_time').on(t.throttleId, t.at)],
);

/** The waiting task whose estimate does not fit into a token budget, and since when. */
export const throttleHeads = runplane.table('throttle_heads', {
  throttleId: id('throttle_id').primaryKey(),
  taskId: id('task_id').notNull(),
  tokens: count('tokens').notNull(),
  since: at('since').notNull(),
  seenAt: at('seen_at').notNull(),
});

/** The last attempts of agents with a token budget: what estimates are learned from. */
export const settledAttempts = runplane.table(
  'settled_attempts',
  {
    attemptId: id('attempt_id').primaryKey(),
    /** The order in which they ended. */
    id: bigint('id', { mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
    agentId: id('agent_id').notNull(),
    tokens: count('tokens').notNull(),
    /** What its task said that it would use; null when it did not. */
    expectedTokens: count('expected_tokens'),
    seconds: doublePrecision('seconds').notNull(),
  },
  (t) => [index('settled_attempts_by_agent').on(t.agentId, t.id)],
);

/** What an attempt of an agent is expected to use when its task does not say. */
export const agentEstimates = runplane.table('agent_estimates', {
  agentId: id('agent_id').primaryKey(),
  tokens: count('tokens').notNull(),
  /** By how much tasks that say what they will use fall short of it, at least 1. */
  shortfall: doublePrecision('shortfall').notNull(),
  seconds: doublePrecision('seconds').notNull(),
});
