import type { Queryable } from '../db/pool.ts';
import { dependencyFailed, inputTemplateFailed } from '../domain/execution-error.ts';
import { membersOf, type SpawnedRow } from './check-spawn.ts';
import { renderInputs } from './render-inputs.ts';
import { isSatisfied, resolveByCounts } from './resolve-dependents.ts';
import { readMembers, readStepCounts, readWaitingTasks } from './step-counts.sql.ts';
import type { StepKey } from './step-counts.ts';
import type { EndedTask, TransitionBuilder } from './transition-builder.ts';

/**
 * Adds what follows in runs with spawned tasks. Their steps are counted: only where a count comes to zero are the tasks
 * read that wait for the step, so that the end of a task costs the same in a run of any size.
 */
export async function followTrees(
  tx: Queryable,
  builder: TransitionBuilder,
  runIds: readonly string[],
  spawned: readonly SpawnedRow[],
): Promise<void> {
  const { stepCounts: counts } = builder;
  for (const row of spawned) counts.change(row.run_id, membersOf(row), { open: 1 });
  // What they depend on may be over already.
  let touched: StepKey[] = spawned.flatMap((row) =>
    (row.depends_on ?? []).map((step) => ({ runId: row.run_id, step })),
  );
  const counted = new Map<string, number>();
  for (;;) {
    const ended = runIds.flatMap((runId) => {
      const all = builder.endedIn(runId);
      const fresh = all.slice(counted.get(runId) ?? 0);
      counted.set(runId, all.length);
      return fresh;
    });
    touched.push(...(await count(tx, builder, ended)));
    if (touched.length === 0) return;
    await readStepCounts(tx, counts, touched);
    const over = touched.filter(({ runId, step }) => counts.find(runId, step)?.open === 0);
    await unblock(tx, builder, over);
    touched = [];
  }
}

/** Counts tasks that end; answers the steps that they were members of. */
async function count(
  tx: Queryable,
  builder: TransitionBuilder,
  ended: readonly EndedTask[],
): Promise<StepKey[]> {
  const ends = new Map(ended.map((end) => [end.taskId, end]));
  const members = await readMembers(tx, [...ends.keys()]);
  const touched = new Map<string, StepKey>();
  for (const { taskId, runId, memberOf, dependsOn, blocked, spawned } of members) {
    const end = ends.get(taskId);
    if (!end) continue;
    builder.stepCounts.change(runId, memberOf, { open: -1, broken: isSatisfied(end) ? 0 : 1 });
    if (blocked) builder.stepCounts.join(taskId, runId, dependsOn);
    if (spawned) builder.spawnedEnds.add(taskId);
    for (const step of memberOf) touched.set(`${runId} ${step}`, { runId, step });
  }
  return [...touched.values()];
}

/** Enqueues or fails the tasks that waited for these steps and for nothing else. */
async function unblock(tx: Queryable, builder: TransitionBuilder, over: readonly StepKey[]): Promise<void> {
  const { stepCounts: counts } = builder;
  const waiting = (await readWaitingTasks(tx, over)).filter(({ id }) => builder.statusOf(id) === undefined);
  await readStepCounts(
    tx,
    counts,
    waiting.flatMap(({ runId, dependsOn }) => dependsOn.map((step) => ({ runId, step }))),
  );
  const { unblocked, failed } = resolveByCounts(waiting, ({ runId }, step) => counts.find(runId, step));
  for (const { task, steps } of failed) builder.failBlocked(task, dependencyFailed(steps));
  const inputs = await renderInputs(tx, unblocked, builder);
  for (const task of unblocked) {
    const rendered = inputs.get(task.id);
    if (rendered && 'failure' in rendered) builder.failBlocked(task, inputTemplateFailed(rendered.failure));
    else {
      counts.join(task.id, task.runId, task.dependsOn);
      builder.enqueueBlocked(task, rendered?.input ?? null, laterOf(task));
    }
  }
}

const laterOf = ({ availableAt, delaySeconds }: { availableAt: Date | null; delaySeconds: number }) =>
  availableAt === null ? null : { at: availableAt.toISOString(), delaySeconds };
