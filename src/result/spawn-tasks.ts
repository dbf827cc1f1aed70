import type { Queryable } from '../db/pool.ts';
import { limits } from '../domain/limits.ts';
import { type InvalidInput, InvalidInputError, isInvalidInput, parsed } from '../domain/problems.ts';
import {
  checkTasksOfRun,
  membersOf,
  planSpawn,
  type SpawnedRow,
  type Spawner,
  type SpawningRun,
} from './check-spawn.ts';
import type { LockedRun } from './lock-runs.sql.ts';
import type { SpawnedTask } from './parse-spawn.ts';
import { insertSpawned, readAgentIds, readSpawners, readWaits } from './spawn-tasks.sql.ts';
import { addStepWaits, countSteps, readStepCounts, uncountSteps } from './step-counts.sql.ts';
import { StepCounts } from './step-counts.ts';
import { addWaits } from './wait-graph.ts';

/** A result that completes its task and asks for more. */
export interface Spawning {
  taskId: string;
  runId: string;
  tasks: readonly SpawnedTask[];
}

export interface Spawned {
  rows: SpawnedRow[];
  /** Seconds until those may start that were asked for later. */
  delays: ReadonlyMap<string, number>;
  /** Why results cannot be applied, by task. */
  refused: ReadonlyMap<string, InvalidInput>;
}

/** As many rows as one statement gets. */
const rowsAtOnce = 1000;

/** Inserts what results spawn, each result's as a whole or not at all, under the locks of their runs. */
export async function spawnTasks(
  tx: Queryable,
  asked: readonly Spawning[],
  runs: ReadonlyMap<string, LockedRun>,
): Promise<Spawned> {
  const refused = new Map<string, InvalidInput>();
  if (asked.length === 0) return { rows: [], delays: new Map(), refused };
  const spawners = await readSpawners(
    tx,
    asked.map(({ taskId }) => taskId),
  );
  const known = new Map<string, KnownRun>();
  const spawning = asked.flatMap(({ taskId, runId, tasks }) => {
    const spawner = spawners.get(taskId);
    const run = runs.get(runId);
    if (!spawner || !run) throw new Error(`The task ${taskId} or its run is gone.`);
    // Who was asked to stop starts nothing new.
    if (spawner.cancelRequested || run.cancelRequested) return [];
    const problem = problemOf(() => checkTasksOfRun(run.totalTasks, tasks.length));
    if (problem) {
      refused.set(taskId, problem);
      return [];
    }
    known.set(runId, known.get(runId) ?? new KnownRun(run));
    return { spawner, tasks };
  });
  const agents = await learn(tx, spawning, [...known.values()]);

  const rows: SpawnedRow[] = [];
  for (const { spawner, tasks } of spawning) {
    const run = known.get(spawner.runId) as KnownRun;
    const problem = await run.readWaits(tx, tasks);
    const planned = problem ?? parsed(() => planSpawn(spawner, tasks, run, agents));
    if (isInvalidInput(planned)) refused.set(spawner.taskId, planned);
    else {
      rows.push(...planned);
      run.add(planned);
    }
  }
  await forgetUnused(tx, [...known.values()]);
  const delays = new Map<string, number>();
  for (let at = 0; at < rows.length; at += rowsAtOnce)
    for (const [id, seconds] of await insertSpawned(tx, rows.slice(at, at + rowsAtOnce)))
      delays.set(id, seconds);
  await addStepWaits(
    tx,
    rows.flatMap((row) => (row.depends_on ? row.id : [])),
  );
  return { rows, delays, refused };
}

/** Of runs that were counted for results which are all refused. */
async function forgetUnused(tx: Queryable, runs: readonly KnownRun[]): Promise<void> {
  const unused = runs.filter((known) => known.isCountedAnew && known.totalTasks === known.run.totalTasks);
  await uncountSteps(
    tx,
    unused.map(({ run }) => run.id),
  );
  for (const { run } of unused) run.hasSpawned = false;
}

/** Reads what decides about the tasks: agents, and the steps that they name. */
async function learn(
  tx: Queryable,
  spawning: readonly { spawner: Spawner; tasks: readonly SpawnedTask[] }[],
  runs: readonly KnownRun[],
): Promise<Map<string, string>> {
  if (spawning.length === 0) return new Map();
  const first = runs.filter((known) => known.isCountedAnew);
  await countSteps(
    tx,
    first.map(({ run }) => run.id),
  );
  for (const { run } of first) run.hasSpawned = true;
  const byRun = new Map(runs.map((known) => [known.run.id, known]));
  const named = new Map<string, Set<string>>();
  for (const { spawner, tasks } of spawning) {
    const steps = named.get(spawner.runId) ?? new Set();
    named.set(spawner.runId, steps);
    for (const { step, dependsOn } of tasks) for (const name of [step, ...dependsOn]) steps.add(name);
  }
  const counts = new StepCounts();
  await readStepCounts(
    tx,
    counts,
    [...named].flatMap(([runId, steps]) => [...steps].map((step) => ({ runId, step }))),
  );
  for (const [runId, steps] of named) {
    for (const step of steps) {
      const count = counts.find(runId, step);
      if (count) byRun.get(runId)?.steps.add(step);
      if (count && count.joined > 0) byRun.get(runId)?.joined.add(step);
    }
  }
  return readAgentIds(tx, [...new Set(spawning.flatMap(({ tasks }) => tasks.map(({ agent }) => agent)))]);
}

/** A run as the results of a group find it, one after the other. */
class KnownRun implements SpawningRun {
  readonly run: LockedRun;
  /** Nothing was spawned in it before. */
  readonly isCountedAnew: boolean;
  totalTasks: number;
  readonly steps = new Set<string>();
  readonly joined = new Set<string>();
  readonly waits = new Map<string, Set<string>>();
  /** Steps whose waits in the database were read. */
  readonly #read = new Set<string>();

  constructor(run: LockedRun) {
    this.run = run;
    this.isCountedAnew = !run.hasSpawned;
    this.totalTasks = run.totalTasks;
  }

  hasStep(step: string): boolean {
    return this.steps.has(step);
  }

  isJoined(step: string): boolean {
    return this.joined.has(step);
  }

  add(rows: readonly SpawnedRow[]): void {
    this.totalTasks += rows.length;
    for (const row of rows) {
      this.steps.add(row.step);
      addWaits(this.waits, membersOf(row), row.depends_on ?? []);
    }
  }

  /** Follows, from the steps that tasks depend on, who waits for whom; answers why not when that is too much. */
  async readWaits(tx: Queryable, tasks: readonly SpawnedTask[]): Promise<InvalidInput | null> {
    const first = tasks.findIndex(({ dependsOn }) => dependsOn.length > 0);
    const seen = new Set<string>();
    let level = new Set(tasks.flatMap(({ dependsOn }) => dependsOn));
    const named = level.size;
    for (let depth = 0; level.size > 0; depth++) {
      for (const step of level) seen.add(step);
      if (depth > limits.waitingDepth || seen.size > named + limits.waitingSteps) {
        const field = `spawn[${first}].dependsOn`;
        return new InvalidInputError(
          field,
          `${field} waits, through other steps, for more than ${limits.waitingDepth} in a row or ${limits.waitingSteps} in all.`,
        ).problem;
      }
      const unread = [...level].filter((step) => !this.#read.has(step));
      for (const { step, waitsFor } of await readWaits(
        tx,
        unread.map((step) => ({ runId: this.run.id, step })),
      ))
        addWaits(this.waits, [step], [waitsFor]);
      for (const step of unread) this.#read.add(step);
      level = new Set(
        [...level].flatMap((step) => [...(this.waits.get(step) ?? [])]).filter((s) => !seen.has(s)),
      );
    }
    return null;
  }
}

function problemOf(check: () => void): InvalidInput | null {
  const outcome = parsed(check);
  return isInvalidInput(outcome) ? outcome : null;
}
