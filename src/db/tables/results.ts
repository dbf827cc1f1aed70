import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  doublePrecision,
  index,
  integer,
  jsonb,
  numeric,
  primaryKey,
  text,
  unique,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { at, attemptStatus, bytea, count, errorKind, id, runplane } from './types.ts';

/** Attempts that ended. A running one is its row in leases. */
export const attempts = runplane.table(
  'attempts',
  {
    id: id().primaryKey(),
    taskId: id('task_id').notNull(),
    runId: id('run_id').notNull(),
    number: integer('number').notNull(),
    status: attemptStatus('status').notNull(),
    counted: boolean('counted').notNull(),
    workerId: id('worker_id').notNull(),
    externalRunId: text('external_run_id'),
    traceId: text('trace_id'),
    errorCode: text('error_code'),
    errorKind: errorKind('error_kind'),
    errorMessage: text('error_message'),
    late: boolean('late').notNull().default(false),
    sanitized: boolean('sanitized').notNull().default(false),
    confidence: doublePrecision('confidence'),
    /** SHA-256 of the canonical result, null when none was reported: tells a repeated result from another one. */
    resultDigest: bytea('result_digest'),
    computeCost: numeric('compute_cost', { precision: 30, scale: 12 }).notNull().default('0'),
    startedAt: at('started_at').notNull(),
    finishedAt: at('finished_at').notNull(),
  },
  (t) => [
    unique('attempts_by_task').on(t.taskId, t.number),
    check('attempts_number', sql`${t.number} >= 1`),
    check('attempts_compute_cost', sql`${t.computeCost} >= 0`),
  ],
);

/** One row a provider's answer: disjoint token buckets, the cost as given or null while its price is unknown. */
export const usage = runplane.table(
  'usage',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    attemptId: id('attempt_id').notNull(),
    taskId: id('task_id').notNull(),
    runId: id('run_id').notNull(),
    agentId: id('agent_id').notNull(),
    model: text('model'),
    provider: text('provider'),
    responseId: text('response_id'),
    inputTokens: count('input_tokens'),
    cacheReadTokens: count('cache_read_tokens'),
    cacheWriteTokens: count('cache_write_tokens'),
    cacheWrite1hTokens: count('cache_write_1h_tokens'),
    outputTokens: count('output_tokens'),
    reasoningTokens: count('reasoning_tokens'),
    requests: integer('requests').notNull().default(1),
    llmCost: numeric('llm_cost', { precision: 30, scale: 12 }),
    raw: jsonb('raw'),
    at: at('at').notNull(),
  },
  (t) => [
    uniqueIndex('usage_by_response').on(t.responseId).where(sql`${t.responseId} is not null`),
    index('usage_by_task').on(t.taskId),
    index('usage_by_run').on(t.runId),
    check(
      'usage_counts',
      sql`least(${t.inputTokens}, ${t.cacheReadTokens}, ${t.cacheWriteTokens}, ${t.cacheWrite1hTokens}, ${t.outputTokens}, ${t.reasoningTokens}, ${t.requests}) >= 0`,
    ),
    check('usage_cost', sql`${t.llmCost} >= 0`),
  ],
);

export const deadLetters = runplane.table(
  'dead_letters',
  {
    id: id().primaryKey(),
    taskId: id('task_id').notNull().unique(),
    runId: id('run_id').notNull(),
    agentId: id('agent_id').notNull(),
    scope: text('scope').notNull(),
    scopeId: text('scope_id'),
    errorCode: text('error_code').notNull(),
    errorKind: errorKind('error_kind').notNull(),
    errorMessage: text('error_message'),
    failCount: integer('fail_count').notNull().default(1),
    failedAt: at('failed_at').notNull(),
    replayedAt: at('replayed_at'),
  },
  (t) => [
    check('dead_letters_fail_count', sql`${t.failCount} >= 1`),
    check('dead_letters_scope', sql`${t.scope} in ('knowledge_base', 'knowledge', 'tenant', 'unknown')`),
  ],
);

export const assets = runplane.table('assets', {
  id: id().primaryKey(),
  key: text('key').notNull().unique(),
  description: text('description'),
  createdAt: at('created_at').notNull().default(sql`runplane.clock()`),
});

export const materializations = runplane.table(
  'materializations',
  {
    id: id().primaryKey(),
    assetId: id('asset_id')
      .notNull()
      .references(() => assets.id),
    partition: text('partition'),
    runId: id('run_id').notNull(),
    taskId: id('task_id').notNull(),
    attemptId: id('attempt_id').notNull(),
    correlationId: text('correlation_id').notNull(),
    metadata: jsonb('metadata'),
    at: at('at').notNull(),
  },
  (t) => [
    unique('materializations_by_attempt').on(t.attemptId, t.assetId, t.partition).nullsNotDistinct(),
    index('materializations_by_correlation')
      .on(t.correlationId, t.assetId, t.id)
      .where(sql`${t.correlationId} is not null`),
    index('materializations_by_task').on(t.taskId),
  ],
);

/** Lineage between productions: which one was made from which. Of each asset that its step reads, one. */
export const materializationInputs = runplane.table(
  'materialization_inputs',
  {
    materializationId: id('materialization_id')
      .notNull()
      .references(() => materializations.id, { onDelete: 'cascade' }),
    inputId: id('input_id')
      .notNull()
      .references(() => materializations.id, { onDelete: 'cascade' }),
  },
  (t) => [
    primaryKey({ columns: [t.materializationId, t.inputId] }),
    index('materialization_inputs_by_input').on(t.inputId),
  ],
);

/** What productions lack: an asset that their step reads and that was not produced yet under their correlation id. */
export const awaitedInputs = runplane.table(
  'awaited_inputs',
  {
    correlationId: text('correlation_id').notNull(),
    assetId: id('asset_id').notNull(),
    materializationId: id('materialization_id')
      .notNull()
      .references(() => materializations.id, { onDelete: 'cascade' }),
  },
  (t) => [
    primaryKey({ columns: [t.correlationId, t.assetId, t.materializationId] }),
    index('awaited_inputs_by_materialization').on(t.materializationId),
  ],
);
