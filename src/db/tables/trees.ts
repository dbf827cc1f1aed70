import { sql } from 'drizzle-orm';
import { check, index, integer, primaryKey, text } from 'drizzle-orm/pg-core';
import { id, runplane } from './types.ts';

/**
 * The steps of runs in which tasks were spawned, counted so that the end of a task needs no look at the others. A task
 * is counted for each step that it is a member of. Exact because it only changes under the run's lock.
 */
export const runSteps = runplane.table(
  'run_steps',
  {
    runId: id('run_id').notNull(),
    step: text('step').notNull(),
    /** Members that are not terminal. */
    open: integer('open').notNull(),
    /** Members that ended other than COMPLETED and are not optional. */
    broken: integer('broken').notNull(),
    /** Tasks that depend on the step and are not blocked (any more): who spawns into it now comes too late for them. */
    joined: integer('joined').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.runId, t.step] }),
    check('run_steps_counts', sql`least(${t.open}, ${t.broken}, ${t.joined}) >= 0`),
  ],
);

/** In these runs, who waits for what: a row for each blocked task, step that it depends on, and step that waits with it. */
export const stepWaits = runplane.table(
  'step_waits',
  {
    runId: id('run_id').notNull(),
    /** A step that the task is a member of, and which therefore is not over before it. */
    waitingStep: text('waiting_step').notNull(),
    /** A step that the task depends on. */
    step: text('step').notNull(),
    taskId: id('task_id').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.runId, t.waitingStep, t.step, t.taskId] }),
    index('step_waits_by_step').on(t.runId, t.step, t.taskId),
  ],
);
