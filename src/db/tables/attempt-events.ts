import { sql } from 'drizzle-orm';
import { bigint, boolean, check, index, integer, jsonb, primaryKey, text, unique } from 'drizzle-orm/pg-core';
import { at, id, runplane, xid8 } from './types.ts';

/** What attempts tell while they run. Read like the change log, but by whom it concerns. */
export const attemptEvents = runplane.table(
  'attempt_events',
  {
    runId: id('run_id').notNull(),
    xid: xid8('xid').notNull().default(sql`pg_current_xact_id()`),
    id: bigint('id', { mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
    /** As in the change log: the event before it, of the same attempt, has a smaller xid. */
    seenBefore: xid8('seen_before').notNull().default(sql`pg_snapshot_xmax(pg_current_snapshot())`),
    taskId: id('task_id').notNull(),
    attemptId: id('attempt_id').notNull(),
    sequence: integer('sequence').notNull(),
    type: text('type').notNull(),
    at: at('at').notNull(),
    data: jsonb('data'),
    /** Of its type and data, so that what is sent together stays small. */
    bytes: integer('bytes').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.runId, t.xid, t.id] }),
    index('attempt_events_by_task').on(t.taskId, t.xid, t.id).where(sql`${t.taskId} is not null`),
    unique('attempt_events_by_attempt').on(t.attemptId, t.sequence),
    check('attempt_events_sequence', sql`${t.sequence} >= 1`),
  ],
);

/** How much an attempt told. Its appends follow each other under the lock of this row. */
export const attemptEventCounts = runplane.table(
  'attempt_event_counts',
  {
    attemptId: id('attempt_id').primaryKey(),
    lastSequence: integer('last_sequence').notNull().default(0),
    bytes: bigint('bytes', { mode: 'number' }).notNull().default(0),
    /** Text of an event had to be repaired. */
    sanitized: boolean('sanitized').notNull().default(false),
  },
  (t) => [check('attempt_event_counts_range', sql`${t.lastSequence} >= 0 and ${t.bytes} >= 0`)],
);
