import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  doublePrecision,
  index,
  integer,
  jsonb,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import {
  at,
  bytea,
  count,
  errorKind,
  eventSource,
  id,
  loggedStatus,
  priority,
  runplane,
  runStatus,
  stepCondition,
  taskState,
  xid8,
} from './types.ts';

export const events = runplane.table(
  'events',
  {
    id: id().primaryKey(),
    topic: text('topic').notNull(),
    idempotencyKey: text('idempotency_key'),
    correlationId: text('correlation_id').notNull(),
    source: eventSource('source').notNull(),
    payload: jsonb('payload'),
    customer: text('customer'),
    labels: jsonb('labels').notNull().default({}),
    rejection: jsonb('rejection'),
    /** The message as it came, cut, of a rejected event. */
    raw: bytea('raw'),
    refusals: jsonb('refusals').notNull().default([]),
    /** The routes that launched: they stay launched when retention deletes their runs. */
    launchedRoutes: text('launched_routes').array().notNull().default([]),
    /** Of whoever sent it (W3C): trace id, span id, flags. */
    traceContext: bytea('trace_context'),
    receivedAt: at('received_at').notNull().default(sql`runplane.clock()`),
  },
  (t) => [
    index('events_by_correlation').on(t.correlationId),
    index('events_rejected').on(t.id).where(sql`${t.rejection} is not null`),
    check('events_topic', sql`${t.topic} <> ''`),
    check(
      'events_raw',
      sql`${t.raw} is null or ${t.rejection} is not null and octet_length(${t.raw}) <= 65536`,
    ),
  ],
);

/** A key that was used, with what it made: a repeated launch or event finds its first result here. */
export const idempotencyRecords = runplane.table(
  'idempotency_records',
  {
    kind: text('kind').notNull(),
    scope: text('scope').notNull().default(''),
    keyHash: bytea('key_hash').notNull(),
    digest: bytea('digest').notNull(),
    objectId: id('object_id').notNull(),
    /** Of a launch that is debounced: several keys have one run. */
    debounced: boolean('debounced').notNull().default(false),
    /** Everything before it in the change log was over when the object was made: where to watch it from. */
    position: xid8('position').notNull().default(sql`pg_snapshot_xmin(pg_current_snapshot())`),
    createdAt: at('created_at').notNull().default(sql`runplane.clock()`),
  },
  (t) => [
    primaryKey({ columns: [t.kind, t.scope, t.keyHash] }),
    index('idempotency_records_debounced').on(t.objectId).where(sql`${t.debounced}`),
  ],
);

export const runs = runplane.table(
  'runs',
  {
    id: id().primaryKey(),
    jobId: id('job_id').notNull(),
    jobVersion: integer('job_version').notNull(),
    status: runStatus('status').notNull().default('QUEUED'),
    config: jsonb('config').notNull(),
    correlationId: text('correlation_id').notNull(),
    idempotencyKey: text('idempotency_key'),
    serialKey: text('serial_key'),
    debounceKey: text('debounce_key'),
    customer: text('customer'),
    labels: jsonb('labels').notNull().default({}),
    priority: priority().notNull(),
    eventId: id('event_id'),
    route: text('route'),
    parentRunId: id('parent_run_id'),
    /** Tasks that are not terminal; exact because it only changes under the row's lock. */
    openTasks: integer('open_tasks').notNull(),
    /** Of these, the ones that wait for other steps. */
    blockedTasks: integer('blocked_tasks').notNull(),
    totalTasks: integer('total_tasks').notNull(),
    /** Tasks were spawned in it: its steps are counted in run_steps. */
    hasSpawned: boolean('has_spawned').notNull().default(false),
    /** The task whose failure decided the run. */
    failedTaskId: id('failed_task_id'),
    /** Changes of this run in the change log so far. */
    sequence: integer('sequence').notNull().default(1),
    availableAt: at('available_at').notNull(),
    createdAt: at('created_at').notNull(),
    startedAt: at('started_at'),
    cancelRequestedAt: at('cancel_requested_at'),
    finishedAt: at('finished_at'),
    /** Retention deleted events of its attempts, the last of them written by this transaction. */
    eventsDeletedXid: xid8('events_deleted_xid'),
    /** Of whoever asked for it (W3C): trace id, span id, flags. Null: nobody gave one. */
    traceContext: bytea('trace_context'),
  },
  (t) => [
    index('runs_by_correlation').on(t.correlationId),
    index('runs_by_parent').on(t.parentRunId).where(sql`${t.parentRunId} is not null`),
    uniqueIndex('runs_by_event_and_route').on(t.eventId, t.route).where(sql`${t.eventId} is not null`),
    check('runs_priority', sql`${t.priority} between -1000 and 1000`),
    check(
      'runs_tasks',
      sql`${t.blockedTasks} >= 0 and ${t.openTasks} >= ${t.blockedTasks} and ${t.totalTasks} >= ${t.openTasks}`,
    ),
    check(
      'runs_finished',
      sql`(${t.finishedAt} is not null) = (${t.status} in ('COMPLETED', 'FAILED', 'CANCELLED'))`,
    ),
    check('runs_terminal_has_no_open_task', sql`${t.finishedAt} is null or ${t.openTasks} = 0`),
  ],
);

export const tasks = runplane.table(
  'tasks',
  {
    id: id().primaryKey(),
    runId: id('run_id').notNull(),
    step: text('step').notNull(),
    agentId: id('agent_id').notNull(),
    state: taskState('state').notNull(),
    priority: priority().notNull(),
    /** Its place in the order of its queue since it was last enqueued; null until then. */
    rank: bigint('rank', { mode: 'number' }),
    /** Its customer's turn in the lane of its queue and priority, since it was last made ready. */
    turn: bigint('turn', { mode: 'number' }),
    serialKey: text('serial_key'),
    /** Null: the run's config is the input. */
    input: jsonb('input'),
    output: jsonb('output'),
    dependsOn: text('depends_on').array(),
    runsWhen: stepCondition('runs_when').notNull().default('DEPENDENCIES_COMPLETED'),
    optional: boolean('optional').notNull().default(false),
    cancellable: boolean('cancellable').notNull().default(true),
    /** Null: the agent's retry policy, as it is when an attempt fails. */
    maxAttempts: integer('max_attempts'),
    /** Attempts up to this number were before the last retry by an operator and do not count any more. */
    attemptsForgiven: integer('attempts_forgiven').notNull().default(0),
    estimatedTokens: count('estimated_tokens'),
    confidence: doublePrecision('confidence'),
    /** The task whose result spawned it. */
    parentTaskId: id('parent_task_id'),
    /** The steps that are not over before it is: its own and those of the tasks above it. Null: only its own. */
    memberOf: text('member_of').array(),
    /** The run's labels with its own; null: the run's. */
    labels: jsonb('labels'),
    /** Changes in the change log; while the task is open the row of its place carries the current number. */
    sequence: integer('sequence').notNull().default(1),
    errorCode: text('error_code'),
    errorKind: errorKind('error_kind'),
    errorMessage: text('error_message'),
    availableAt: at('available_at').notNull(),
    createdAt: at('created_at').notNull(),
    cancelRequestedAt: at('cancel_requested_at'),
    finishedAt: at('finished_at'),
    /** The task of an earlier run whose output this one took over instead of being executed. */
    takenOverFrom: id('taken_over_from'),
    /** Its payloads are erased and it is hidden; the row stays for its run, its usage and its cost. */
    deletedAt: at('deleted_at'),
  },
  (t) => [
    // Only who names a run may use it: where tables are small, one of a task's id alone costs the planner as much as its key.
    index('tasks_by_run').on(t.runId, t.id).where(sql`${t.runId} is not null`),
    index('tasks_by_parent').on(t.parentTaskId, t.id).where(sql`${t.parentTaskId} is not null`),
    check('tasks_member_of', sql`${t.step} = any(${t.memberOf})`),
    check('tasks_priority', sql`${t.priority} between -1000 and 1000`),
    check('tasks_max_attempts', sql`${t.maxAttempts} >= 1`),
    check('tasks_confidence', sql`${t.confidence} between 0 and 1`),
    check(
      'tasks_finished',
      sql`(${t.finishedAt} is not null) = (${t.state} in ('COMPLETED', 'FAILED', 'CANCELLED'))`,
    ),
    check('tasks_failed_has_error', sql`${t.state} <> 'FAILED' or ${t.errorCode} is not null`),
    check('tasks_deleted_is_over', sql`${t.deletedAt} is null or ${t.finishedAt} is not null`),
    check(
      'tasks_deleted_has_no_payload',
      sql`${t.deletedAt} is null or coalesce(${t.input}, ${t.output}) is null and ${t.errorMessage} is null`,
    ),
  ],
);

/**
 * The newest run of each job and debounce key. Whether it still waits, so that a launch changes it, is for its tasks
 * to say; a row whose run does not is deleted by some later launch.
 */
export const debounces = runplane.table(
  'debounces',
  {
    jobId: id('job_id').notNull(),
    debounceKey: text('debounce_key').notNull(),
    runId: id('run_id').notNull(),
    /** Its config is { items: [...] }, with the config of each launch. */
    collect: boolean('collect').notNull(),
    firstLaunchAt: at('first_launch_at').notNull(),
    startsAt: at('starts_at').notNull(),
    /** Where in the change log to watch the run from. */
    position: xid8('position').notNull(),
  },
  (t) => [primaryKey({ columns: [t.jobId, t.debounceKey] }), index('debounces_by_start').on(t.startsAt)],
);

/** Every status change of every task and run, written in the transaction of the change itself. */
export const changeLog = runplane.table(
  'change_log',
  {
    xid: xid8('xid').notNull().default(sql`pg_current_xact_id()`),
    id: bigint('id', { mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
    /**
     * End of the snapshot that the change saw: the change before it, of the same object, has a smaller xid.
     * Transactions get their xid before they wait for locks, so xid alone does not order an object's changes.
     */
    seenBefore: xid8('seen_before').notNull().default(sql`pg_snapshot_xmax(pg_current_snapshot())`),
    runId: id('run_id').notNull(),
    /** Null: a change of the run itself. */
    taskId: id('task_id'),
    sequence: integer('sequence').notNull(),
    fromStatus: loggedStatus('from_status'),
    toStatus: loggedStatus('to_status').notNull(),
    attemptId: id('attempt_id'),
    attemptNumber: integer('attempt_number'),
    errorCode: text('error_code'),
    reason: text('reason'),
    at: at('at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.xid, t.id] })],
);
