import { bigint, customType, pgSchema, smallint, timestamp, uuid } from 'drizzle-orm/pg-core';

/** Everything of Runplane lives in a schema of its own, so that it can share a database with the application. */
export const runplane = pgSchema('runplane');

/**
 * What a task row says about itself. ENQUEUED and PROCESSING are both OPEN here: the place of an open task is the
 * row in ready_tasks, delayed_tasks, serial_tasks or leases, so that claiming writes no task row.
 */
export const taskState = runplane.enum('task_state', ['BLOCKED', 'OPEN', 'COMPLETED', 'FAILED', 'CANCELLED']);
export const runStatus = runplane.enum('run_status', [
  'QUEUED',
  'RUNNING',
  'CANCELLING',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
]);
export const attemptStatus = runplane.enum('attempt_status', [
  'COMPLETED',
  'FAILED',
  'CANCELLED',
  'LOST',
  'RELEASED',
  'TIMED_OUT',
]);
/** Statuses of tasks and of runs as the change log records them. */
export const loggedStatus = runplane.enum('logged_status', [
  'BLOCKED',
  'ENQUEUED',
  'PROCESSING',
  'QUEUED',
  'RUNNING',
  'CANCELLING',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
]);
export const stepCondition = runplane.enum('step_condition', [
  'DEPENDENCIES_COMPLETED',
  'DEPENDENCIES_FINISHED',
]);
export const errorKind = runplane.enum('error_kind', [
  'TRANSIENT',
  'PERMANENT',
  'INVALID_OUTPUT',
  'RATE_LIMITED',
  'PROVIDER_DOWN',
  'QUOTA_EXHAUSTED',
]);
export const dispatchKind = runplane.enum('dispatch_kind', ['PULL', 'INLINE']);
export const delayReason = runplane.enum('delay_reason', ['NOT_BEFORE', 'RETRY_BACKOFF']);
export const eventSource = runplane.enum('event_source', ['GRAPHQL', 'NATS']);

export const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });
/** A 64-bit transaction id: unlike xid it never wraps. */
export const xid8 = customType<{ data: string }>({ dataType: () => 'xid8' });

export const id = (name = 'id') => uuid(name);
export const at = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' });
export const count = (name: string) => bigint(name, { mode: 'number' });
export const priority = (name = 'priority') => smallint(name);
