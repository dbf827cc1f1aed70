import { sql } from 'drizzle-orm';
import {
  boolean,
  check,
  integer,
  jsonb,
  numeric,
  primaryKey,
  smallint,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { at, bytea, count, dispatchKind, id, priority, runplane, xid8 } from './types.ts';

const versioned = {
  version: integer('version').notNull().default(1),
  createdAt: at('created_at').notNull().default(sql`runplane.clock()`),
  updatedAt: at('updated_at').notNull().default(sql`runplane.clock()`),
};

/** One row: what makes this database one installation. The epoch changes when a backup is restored. */
export const installation = runplane.table(
  'installation',
  {
    id: smallint('id').primaryKey().default(1),
    epoch: id('epoch').notNull(),
    secretKey: bytea('secret_key').notNull(),
    /** The last entry of the change log that was deleted, in the log's order: cursors before it have expired. */
    logDeletedXid: xid8('log_deleted_xid').notNull().default('0'),
    logDeletedId: count('log_deleted_id').notNull().default(0),
    createdAt: at('created_at').notNull().default(sql`runplane.clock()`),
  },
  (t) => [check('installation_is_one_row', sql`${t.id} = 1`)],
);

export const pools = runplane.table(
  'pools',
  {
    id: id().primaryKey(),
    name: text('name').notNull().unique(),
    slotsPerReplica: smallint('slots_per_replica').notNull(),
    elastic: boolean('elastic').notNull().default(false),
    ...versioned,
  },
  (t) => [
    check('pools_name', sql`btrim(${t.name}) <> ''`),
    check('pools_slots', sql`${t.slotsPerReplica} between 0 and 1000`),
  ],
);

export const queues = runplane.table(
  'queues',
  {
    id: id().primaryKey(),
    name: text('name').notNull().unique(),
    poolId: id('pool_id')
      .notNull()
      .references(() => pools.id),
    weight: smallint('weight').notNull(),
    sharedWeight: smallint('shared_weight').notNull().default(0),
    paused: boolean('paused').notNull().default(false),
    ...versioned,
  },
  (t) => [
    check('queues_name', sql`btrim(${t.name}) <> ''`),
    check('queues_weights', sql`${t.weight} between 0 and 100 and ${t.sharedWeight} between 0 and 100`),
  ],
);

export const throttles = runplane.table(
  'throttles',
  {
    id: id().primaryKey(),
    name: text('name').notNull().unique(),
    maxConcurrentTasks: integer('max_concurrent_tasks'),
    maxTokensPerMinute: integer('max_tokens_per_minute'),
    maxRequestsPerMinute: integer('max_requests_per_minute'),
    maxRequestsPerSecond: integer('max_requests_per_second'),
    notBefore: at('not_before'),
    ...versioned,
  },
  (t) => [
    check('throttles_name', sql`btrim(${t.name}) <> ''`),
    check(
      'throttles_limits',
      sql`least(${t.maxConcurrentTasks}, ${t.maxTokensPerMinute}, ${t.maxRequestsPerMinute}, ${t.maxRequestsPerSecond}) >= 0`,
    ),
  ],
);

export const agents = runplane.table(
  'agents',
  {
    id: id().primaryKey(),
    name: text('name').notNull().unique(),
    description: text('description'),
    dispatchKind: dispatchKind('dispatch_kind').notNull(),
    handler: text('handler'),
    batchBySerialKey: boolean('batch_by_serial_key').notNull().default(false),
    queueId: id('queue_id')
      .notNull()
      .references(() => queues.id),
    maxConcurrentTasks: integer('max_concurrent_tasks'),
    /** A whole one: what was not given has its default. */
    retryPolicy: jsonb('retry_policy').notNull(),
    leaseSeconds: integer('lease_seconds').notNull(),
    timeoutSeconds: integer('timeout_seconds'),
    defaultModel: text('default_model'),
    computeCostPerHour: numeric('compute_cost_per_hour', { precision: 30, scale: 12 }),
    paused: boolean('paused').notNull().default(false),
    ...versioned,
  },
  (t) => [
    check('agents_name', sql`btrim(${t.name}) <> ''`),
    check('agents_handler', sql`(${t.dispatchKind} = 'INLINE') = (${t.handler} is not null)`),
    check('agents_batch', sql`${t.dispatchKind} = 'PULL' or not ${t.batchBySerialKey}`),
    check('agents_limit', sql`${t.maxConcurrentTasks} >= 0`),
    check('agents_lease', sql`${t.leaseSeconds} between 5 and 3600`),
    check('agents_timeout', sql`${t.timeoutSeconds} between 1 and 86400`),
    check('agents_compute_cost', sql`${t.computeCostPerHour} >= 0`),
  ],
);

export const agentThrottles = runplane.table(
  'agent_throttles',
  {
    agentId: id('agent_id')
      .notNull()
      .references(() => agents.id),
    throttleId: id('throttle_id')
      .notNull()
      .references(() => throttles.id),
  },
  (t) => [
    primaryKey({ columns: [t.agentId, t.throttleId] }),
    uniqueIndex('agent_throttles_by_throttle').on(t.throttleId, t.agentId),
  ],
);

export const jobs = runplane.table(
  'jobs',
  {
    id: id().primaryKey(),
    name: text('name').notNull().unique(),
    description: text('description'),
    enabled: boolean('enabled').notNull().default(true),
    ...versioned,
  },
  (t) => [check('jobs_name', sql`btrim(${t.name}) <> ''`)],
);

/** Every version of a job is kept: a run goes on with the version that it was launched with. */
export const jobVersions = runplane.table(
  'job_versions',
  {
    jobId: id('job_id')
      .notNull()
      .references(() => jobs.id),
    version: integer('version').notNull(),
    configSchema: jsonb('config_schema'),
    steps: jsonb('steps').notNull(),
    createdAt: at('created_at').notNull().default(sql`runplane.clock()`),
  },
  (t) => [
    primaryKey({ columns: [t.jobId, t.version] }),
    check(
      'job_versions_steps',
      sql`jsonb_typeof(${t.steps}) = 'array' and jsonb_array_length(${t.steps}) between 1 and 100`,
    ),
  ],
);

export const routes = runplane.table(
  'routes',
  {
    id: id().primaryKey(),
    name: text('name').notNull().unique(),
    topic: text('topic').notNull(),
    jobId: id('job_id')
      .notNull()
      .references(() => jobs.id),
    config: jsonb('config'),
    customer: jsonb('customer'),
    labels: jsonb('labels'),
    serialKey: jsonb('serial_key'),
    estimatedTokens: jsonb('estimated_tokens'),
    priority: priority().notNull().default(0),
    enabled: boolean('enabled').notNull().default(true),
    ...versioned,
  },
  (t) => [
    check('routes_name', sql`btrim(${t.name}) <> ''`),
    check('routes_priority', sql`${t.priority} between -1000 and 1000`),
  ],
);
