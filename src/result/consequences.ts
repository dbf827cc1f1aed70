import { enqueueTasks } from '../db/enqueue-tasks.sql.ts';
import type { Queryable } from '../db/pool.ts';
import { dependencyFailed, inputTemplateFailed } from '../domain/execution-error.ts';
import { applyTransition } from './apply-transition.sql.ts';
import type { SpawnedRow } from './check-spawn.ts';
import { followTrees } from './follow-trees.ts';
import { leaveDeadLetters } from './leave-dead-letters.sql.ts';
import type { LockedRun } from './lock-runs.sql.ts';
import { type RunTask, readKindsOfEnds, readRunTasks } from './read-run-tasks.sql.ts';
import { renderInputs } from './render-inputs.ts';
import { finishedRunStatus, resolveDependents } from './resolve-dependents.ts';
import { countSteps, writeStepCounts } from './step-counts.sql.ts';
import type { TransitionBuilder } from './transition-builder.ts';

/**
 * Adds what follows from the tasks that end or are spawned: for the steps that wait, and for the status of their runs. In
 * some runs nothing ends now and something may follow all the same: in one that begins, what waits for nothing; in one
 * that is repaired, what should have followed long ago. In these no counts are believed. The reason is that of the runs' changes.
 */
export async function addConsequences(
  tx: Queryable,
  builder: TransitionBuilder,
  runs: ReadonlyMap<string, LockedRun>,
  {
    spawned = [],
    alsoIn = new Set(),
    reason = null,
  }: { spawned?: readonly SpawnedRow[]; alsoIn?: ReadonlySet<string>; reason?: string | null } = {},
): Promise<void> {
  const touched = [...runs.values()].filter(
    (run) => builder.endedIn(run.id).length > 0 || mustCancel(run) || alsoIn.has(run.id),
  );
  const isCounted = (run: LockedRun): boolean => run.hasSpawned && !alsoIn.has(run.id);
  builder.uncounted.push(...touched.filter((run) => run.hasSpawned && !isCounted(run)).map((run) => run.id));
  const trees = touched.filter(isCounted).map((run) => run.id);
  if (trees.length > 0) await followTrees(tx, builder, trees, spawned);
  // Where nothing waits and no other task is, what is known already decides.
  const unknown = touched.filter((run) => {
    const ended = builder.endedIn(run.id).length;
    return !isCounted(run) && (run.blockedTasks > 0 || (run.openTasks === ended && run.totalTasks > ended));
  });
  const byRun = new Map<string, RunTask[]>(unknown.map((run) => [run.id, []]));
  for (const task of await readRunTasks(tx, [...byRun.keys()])) byRun.get(task.runId)?.push(task);
  for (const tasks of byRun.values()) follow(builder, tasks);

  await unblock(tx, builder, byRun);
  const isOver = (run: LockedRun): boolean =>
    run.openTasks + builder.spawnedIn(run.id).total === builder.endedIn(run.id).length;
  const endsBefore = await readKindsOfEnds(
    tx,
    touched.filter((run) => isCounted(run) && isOver(run)).map((run) => run.id),
  );
  for (const run of touched) {
    const ended = builder.endedIn(run.id);
    const states = byRun.get(run.id) ?? [...ended, ...(endsBefore.get(run.id) ?? [])];
    builder.addRun(
      run,
      isOver(run) ? finishedRunStatus(states, run.cancelRequested) : mustCancel(run) ? 'CANCELLING' : null,
      reason,
    );
  }
}

/** Its cancel was requested just now: until its last task is over it is CANCELLING. */
const mustCancel = (run: LockedRun): boolean =>
  run.cancelRequested && (run.status === 'QUEUED' || run.status === 'RUNNING');

/** Writes all that was decided, under the locks that were taken to decide it. */
export async function writeTransition(tx: Queryable, builder: TransitionBuilder): Promise<void> {
  await applyTransition(tx, builder.transition);
  await writeStepCounts(tx, builder.stepCounts);
  await countSteps(tx, builder.uncounted);
  const now = builder.transition.enqueued.filter((task) => task.delay_seconds === 0);
  await enqueueTasks(
    tx,
    now.map(({ task_id: taskId, sequence, attempts }) => ({ taskId, sequence, attempts })),
    builder.endedSerialTasks,
  );
  await leaveDeadLetters(tx, builder.deadLetters);
}

/** Enqueues or fails the blocked tasks whose dependencies are over, until nothing more follows. */
async function unblock(
  tx: Queryable,
  builder: TransitionBuilder,
  byRun: ReadonlyMap<string, RunTask[]>,
): Promise<void> {
  for (let again = true; again; ) {
    const unblocked: RunTask[] = [];
    for (const tasks of byRun.values()) {
      const { unblocked: ready, failed } = resolveDependents(tasks);
      for (const { task, steps } of failed) builder.failBlocked(task, dependencyFailed(steps));
      unblocked.push(...ready);
    }
    again = false;
    const inputs = await renderInputs(tx, unblocked, builder);
    for (const task of unblocked) {
      const rendered = inputs.get(task.id);
      if (rendered && 'failure' in rendered) {
        builder.failBlocked(task, inputTemplateFailed(rendered.failure));
        // What waits for this one fails next.
        again = true;
      } else builder.enqueueBlocked(task, rendered?.input ?? null);
    }
    for (const tasks of byRun.values()) follow(builder, tasks);
  }
}

/** Brings tasks as they were read to what the transition makes of them. */
function follow(builder: TransitionBuilder, tasks: readonly RunTask[]): void {
  for (const task of tasks) {
    task.state = builder.stateOf(task.id) ?? task.state;
    if (task.spawned) builder.spawnedEnds.add(task.id);
  }
}
