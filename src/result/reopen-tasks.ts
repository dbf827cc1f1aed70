import type { Queryable } from '../db/pool.ts';
import { groupBy } from '../domain/group-by.ts';
import type { IllegalState } from '../domain/problems.ts';
import { whyNotRetried } from '../domain/retry-refusal.ts';
import { isTerminal } from '../domain/status.ts';
import { type LockedRun, lockRunsById } from './lock-runs.sql.ts';
import { type RunTask, readRunTasks } from './read-run-tasks.sql.ts';
import { type RenderedInput, renderInputs } from './render-inputs.ts';
import { type ReopenedTask, withoutInput, writeReopened } from './reopen-tasks.sql.ts';
import { isSatisfied } from './resolve-dependents.ts';
import { addStepWaits, writeStepCounts } from './step-counts.sql.ts';
import { StepCounts } from './step-counts.ts';

export interface ReopenRequest {
  runIds: readonly string[];
  /** Which of the failed and cancelled tasks of these runs are tried again. */
  chooses: (task: RunTask) => boolean;
  /** Null: 100 above what the task had. */
  priority: number | null;
}

export interface Reopened {
  taskIds: string[];
  /** Why tasks that were chosen stay as they are. */
  refusals: IllegalState[];
}

/**
 * Tries failed and cancelled tasks again, on the same rows: attempt numbers go on, but the attempts so far count no more.
 * Their runs go on too, and the steps that failed because of them wait again.
 */
export async function reopenTasks(
  tx: Queryable,
  { runIds, chooses, priority }: ReopenRequest,
): Promise<Reopened> {
  const runs = await lockRunsById(tx, runIds);
  const tasks = groupBy(await readRunTasks(tx, runIds), (task) => task.runId);
  const inputs = new Map<string, RenderedInput>();
  const reopened: ReopenedTask[] = [];
  const refusals: IllegalState[] = [];
  for (let undecided = [...runs.values()]; undecided.length > 0; ) {
    const choices = undecided.map((run) => ({
      run,
      ...chooseReopened(run, tasks.get(run.id) ?? [], chooses, inputs),
    }));
    const rendered = await renderMissing(
      tx,
      choices.flatMap((choice) => choice.reopened),
    );
    for (const [id, input] of rendered) inputs.set(id, input);
    // Where an input cannot be rendered, others may have nothing to wait for.
    const stands = ({ reopened: opened }: Choice): boolean =>
      opened.every(({ task }) => !fails(inputs, task));
    for (const choice of choices.filter(stands)) {
      reopened.push(...choice.reopened.map((one) => withInput(one, inputs)));
      refusals.push(...choice.refusals);
    }
    undecided = choices.filter((choice) => !stands(choice)).map(({ run }) => run);
  }
  await writeReopened(tx, reopened, runs, priority);
  await countReopened(tx, reopened, runs);
  return { taskIds: reopened.map(({ task }) => task.id), refusals };
}

type Inputs = ReadonlyMap<string, RenderedInput>;
interface Choice {
  reopened: Pick<ReopenedTask, 'task' | 'waits'>[];
  refusals: IllegalState[];
}

function fails(inputs: Inputs, task: RunTask): boolean {
  const rendered = inputs.get(task.id);
  return rendered !== undefined && 'failure' in rendered;
}

function withInput(one: Choice['reopened'][number], inputs: Inputs): ReopenedTask {
  const rendered = inputs.get(one.task.id);
  return { ...one, input: rendered && 'input' in rendered ? rendered.input : null };
}

/** Inputs of steps that are enqueued now and never were: they were cancelled while they waited for others. */
async function renderMissing(
  tx: Queryable,
  reopened: Choice['reopened'],
): Promise<Map<string, RenderedInput>> {
  const now = reopened.filter(({ task, waits }) => !waits && !task.spawned && task.dependsOn.length > 0);
  const missing = await withoutInput(
    tx,
    now.map(({ task }) => task.id),
  );
  return renderInputs(
    tx,
    now.filter(({ task }) => missing.has(task.id)).map(({ task }) => task),
    { freshEnds: [], spawnedEnds: new Set(), repeatsAlone: true },
  );
}

/** In runs with spawned tasks: counts them for their steps again, and those that wait do so again. */
async function countReopened(
  tx: Queryable,
  reopened: readonly ReopenedTask[],
  runs: ReadonlyMap<string, LockedRun>,
): Promise<void> {
  const counts = new StepCounts();
  const counted = reopened.filter(({ task }) => runs.get(task.runId)?.hasSpawned);
  const waiting = counted.filter(({ waits }) => waits).map(({ task }) => task);
  for (const { task } of counted)
    counts.change(task.runId, task.memberOf, { open: 1, broken: isSatisfied(task) ? 0 : -1 });
  for (const task of waiting) counts.change(task.runId, task.dependsOn, { joined: -1 });
  await writeStepCounts(tx, counts);
  await addStepWaits(
    tx,
    waiting.map((task) => task.id),
  );
}

/** Of the chosen ones those that can run again, and the steps that wait for them; and why not the others. */
function chooseReopened(
  run: LockedRun,
  own: readonly RunTask[],
  chooses: ReopenRequest['chooses'],
  inputs: Inputs,
): Choice {
  const candidates = new Set(
    own.filter(
      (task) => (task.state === 'FAILED' || task.state === 'CANCELLED') && !task.deleted && chooses(task),
    ),
  );
  const refusals: IllegalState[] = [];
  for (;;) {
    const again = new Set([...candidates, ...dependentsOf(candidates, own)]);
    // What is tried again is not over any more: this decides who waits for whom.
    const open = new Set<string>();
    const broken = new Set<string>();
    for (const task of own) {
      const steps = again.has(task) || !isTerminal(task.state) ? open : isSatisfied(task) ? null : broken;
      if (steps) for (const step of task.memberOf) steps.add(step);
    }
    const reopened = [...again].map((task) => ({
      task,
      waits: task.dependsOn.some((step) => open.has(step)),
    }));
    const hopeless = reopened.flatMap(({ task, waits }) => {
      // Those that only come along wait for one that was chosen.
      if (!candidates.has(task)) return [];
      const errorCode = fails(inputs, task) ? 'INPUT_TEMPLATE_FAILED' : task.errorCode;
      const brokenStep = task.dependsOn.find((step) => broken.has(step)) ?? null;
      const why = whyNotRetried({ runStatus: run.status, errorCode, when: task.when, waits, brokenStep });
      return why === null ? [] : { task, why };
    });
    if (hopeless.length === 0) return { reopened, refusals };
    // Without these, others may have nothing to wait for: decide anew.
    for (const { task, why } of hopeless) {
      candidates.delete(task);
      refusals.push(refusal(task, why));
    }
  }
}

const refusal = (task: RunTask, message: string): IllegalState => ({
  kind: 'IllegalState',
  status: task.state,
  message,
});

/** Steps that failed because one of these did not complete, and those that failed because of them. */
function dependentsOf(opened: ReadonlySet<RunTask>, tasks: readonly RunTask[]): RunTask[] {
  const steps = new Set([...opened].flatMap((task) => task.memberOf));
  const found = new Set<RunTask>();
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const task of tasks) {
      if (found.has(task) || task.deleted || task.errorCode !== 'DEPENDENCY_FAILED') continue;
      if (!task.dependsOn.some((step) => steps.has(step))) continue;
      found.add(task);
      for (const step of task.memberOf) steps.add(step);
    }
  }
  return [...found];
}
