import { sql } from 'drizzle-orm';
import { bigint, check, doublePrecision, index, integer, jsonb, primaryKey, text } from 'drizzle-orm/pg-core';
import { at, count, delayReason, id, priority, runplane, xid8 } from './types.ts';

/** Tasks that may be claimed now. Inserted when a task becomes runnable, deleted by its claim; never updated. */
export const readyTasks = runplane.table(
  'ready_tasks',
  {
    agentId: id('agent_id').notNull(),
    /** The negated priority: an ascending scan yields the highest priority first. */
    priorityKey: priority('priority_key').notNull(),
    /** Within a priority customers take turns. */
    turn: bigint('turn', { mode: 'number' }).notNull(),
    rank: bigint('rank', { mode: 'number' }).notNull(),
    taskId: id('task_id').notNull(),
    runId: id('run_id').notNull(),
    sequence: integer('sequence').notNull(),
    attempts: integer('attempts').notNull(),
    readyAt: at('ready_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.agentId, t.priorityKey, t.turn, t.rank] })],
);

/**
 * The last turn that was given to a customer at an agent, of tasks of one priority. The next one is after it, and after
 * the turn that the lane of the agent's queue is at: who comes late neither waits for the others' backlog nor gets more
 * than them. Of an agent and not of its queue, so that what waits for a full agent delays nothing of the others.
 */
export const customerTurns = runplane.table(
  'customer_turns',
  {
    agentId: id('agent_id').notNull(),
    priority: priority().notNull(),
    /** Empty: tasks without a customer, which take turns as if they were one. */
    customer: text('customer').notNull(),
    turn: bigint('turn', { mode: 'number' }).notNull(),
    /** How many turns were given last, so that one statement can add them to what another one gave meanwhile. */
    given: integer('given').notNull(),
  },
  (t) => [primaryKey({ columns: [t.agentId, t.priority, t.customer] })],
);

/** The turn that a lane is at: the tasks of one priority in one queue. Claims write it at most once a second: a row that each of them wrote would be a queue of its own. */
export const laneTurns = runplane.table(
  'lane_turns',
  {
    queueId: id('queue_id').notNull(),
    priority: priority().notNull(),
    turn: bigint('turn', { mode: 'number' }).notNull(),
    at: at('at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.queueId, t.priority] })],
);

/**
 * Where claims begin to look at an agent's leases and ready tasks: before are only dead rows, of which a snapshot that
 * somebody holds keeps as many as were claimed since. Written by claims, under the agent's lock, a few times a second.
 */
export const scanStarts = runplane.table('scan_starts', {
  agentId: id('agent_id').primaryKey(),
  /** No lease of the agent has a lower claim_seq, nor will have. */
  leaseFrom: bigint('lease_from', { mode: 'number' }).notNull(),
  /** No ready task of this priority comes before, nor will. Null: not known of any. */
  priorityKey: priority('priority_key'),
  turn: bigint('turn', { mode: 'number' }),
  rank: bigint('rank', { mode: 'number' }),
  /** What becomes ready gets a later turn, except by transactions that began before this one: it holds when they are over. */
  nextPriorityKey: priority('next_priority_key'),
  nextTurn: bigint('next_turn', { mode: 'number' }),
  nextXid: xid8('next_xid'),
  changedAt: at('changed_at').notNull(),
});

/** Tasks that wait for a time: launched for later, or backing off after a failure. */
export const delayedTasks = runplane.table(
  'delayed_tasks',
  {
    availableAt: at('available_at').notNull(),
    taskId: id('task_id').notNull(),
    runId: id('run_id').notNull(),
    agentId: id('agent_id').notNull(),
    sequence: integer('sequence').notNull(),
    attempts: integer('attempts').notNull(),
    reason: delayReason('reason').notNull(),
    since: at('since').notNull(),
  },
  (t) => [primaryKey({ columns: [t.availableAt, t.taskId] })],
);

/**
 * Enqueued tasks that have a serial key, in order. Only the first of an agent and key may be ready, delayed or leased;
 * it stays here until it is terminal and so keeps the others waiting.
 */
export const serialTasks = runplane.table(
  'serial_tasks',
  {
    agentId: id('agent_id').notNull(),
    serialKey: text('serial_key').notNull(),
    rank: bigint('rank', { mode: 'number' }).notNull(),
    taskId: id('task_id').notNull().unique(),
    runId: id('run_id').notNull(),
    sequence: integer('sequence').notNull(),
    attempts: integer('attempts').notNull(),
    since: at('since').notNull(),
  },
  (t) => [primaryKey({ columns: [t.agentId, t.serialKey, t.rank] })],
);

/**
 * The running attempt of a task. Its row is the capacity in use: limits count these rows and nothing else.
 * There is no index on expires_at on purpose: it would turn every heartbeat into an index write.
 */
export const leases = runplane.table(
  'leases',
  {
    attemptId: id('attempt_id').primaryKey(),
    taskId: id('task_id').notNull().unique(),
    runId: id('run_id').notNull(),
    agentId: id('agent_id').notNull(),
    /** Drawn under the agent's lock: ascends per agent. */
    claimSeq: bigint('claim_seq', { mode: 'number' }).notNull(),
    number: integer('number').notNull(),
    sequence: integer('sequence').notNull(),
    workerId: id('worker_id').notNull(),
    /** Of a pull worker: empty when it gave none. Null: a handler of a server. */
    claimKey: text('claim_key'),
    /** The pool whose slot it takes; null when it was claimed by the names of agents. */
    poolId: id('pool_id'),
    /** Tokens that it is expected to use, where a budget counts them, and those that it has used by now. */
    estimatedTokens: count('estimated_tokens'),
    settledTokens: count('settled_tokens').notNull().default(0),
    leaseSeconds: integer('lease_seconds').notNull(),
    startedAt: at('started_at').notNull(),
    expiresAt: at('expires_at').notNull(),
    timeoutAt: at('timeout_at'),
    /** Set by a cancel; the worker must report before it, else the lease is taken. */
    cancelDeadline: at('cancel_deadline'),
  },
  (t) => [
    index('leases_by_agent').on(t.agentId, t.claimSeq),
    index('leases_by_claim').on(t.workerId, t.claimKey).where(sql`${t.claimKey} is not null`),
  ],
);

/** What the worker told with its heartbeats; beside the lease so that the lease row stays narrow. */
export const taskProgress = runplane.table(
  'task_progress',
  {
    taskId: id('task_id').primaryKey(),
    progress: doublePrecision('progress'),
    checkpoint: jsonb('checkpoint'),
  },
  (t) => [check('task_progress_range', sql`${t.progress} between 0 and 1`)],
);
