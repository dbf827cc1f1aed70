import { newUuid } from '../domain/ids.ts';
import type { Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { InvalidInputError } from '../domain/problems.ts';
import type { SpawnedTask } from './parse-spawn.ts';
import { addWaits, WaitGraph } from './wait-graph.ts';

/** The task whose result spawns others. */
export interface Spawner {
  taskId: string;
  runId: string;
  /** Its own step and those of the tasks above it. */
  memberOf: string[];
  priority: number;
  runLabels: Record<string, string>;
}

/** What is known of the run when a result spawns tasks in it. */
export interface SpawningRun {
  totalTasks: number;
  hasStep(step: string): boolean;
  /** A task that depends on the step is not blocked any more. */
  isJoined(step: string): boolean;
  /** Which steps wait for which others, through blocked tasks. */
  waits: ReadonlyMap<string, ReadonlySet<string>>;
}

/** A spawned task as it is inserted. JSON names are the column names of the SQL. */
export interface SpawnedRow {
  id: string;
  run_id: string;
  parent_task_id: string;
  step: string;
  /** Null: only its own step. */
  member_of: string[] | null;
  agent_id: string;
  priority: number;
  serial_key: string | null;
  /** Null: the run's config. */
  input: { value: Json } | null;
  /** Null: it is not blocked. */
  depends_on: string[] | null;
  runs_when: string;
  optional: boolean;
  max_attempts: number | null;
  estimated_tokens: number | null;
  /** Null: the run's. */
  labels: Record<string, string> | null;
  available_at: string | null;
}

/** Throws InvalidInputError when the run would have too many. */
export function checkTasksOfRun(totalTasks: number, spawned: number): void {
  if (totalTasks + spawned <= limits.tasksOfRun) return;
  throw new InvalidInputError(
    'spawn',
    `spawn has ${spawned} entries and the run has ${totalTasks} tasks; a run has at most ${limits.tasksOfRun}.`,
  );
}

/** The rows that a result's spawn gives, or an InvalidInputError. Pure but for the new ids. */
export function planSpawn(
  spawner: Spawner,
  tasks: readonly SpawnedTask[],
  run: SpawningRun,
  agents: ReadonlyMap<string, string>,
): SpawnedRow[] {
  checkTasksOfRun(run.totalTasks, tasks.length);
  const brought = new Set(tasks.map(({ step }) => step));
  const rows = tasks.map((task, i) => {
    const at = `spawn[${i}]`;
    const agentId = agents.get(task.agent);
    if (agentId === undefined) refuse(`${at}.agent`, `names ${quote(task.agent)}, which is no agent.`);
    if (!spawner.memberOf.includes(task.step) && run.isJoined(task.step)) {
      refuse(`${at}.step`, `is ${quote(task.step)}, but a task that depends on this step ran already.`);
    }
    const unknown = task.dependsOn.find((step) => !brought.has(step) && !run.hasStep(step));
    if (unknown !== undefined) {
      refuse(`${at}.dependsOn`, `names ${quote(unknown)}, a step that neither the run nor spawn has.`);
    }
    return rowOf(spawner, task, agentId, at);
  });
  checkCycles(rows, run);
  return rows;
}

function rowOf(spawner: Spawner, task: SpawnedTask, agentId: string, at: string): SpawnedRow {
  const memberOf = spawner.memberOf.includes(task.step) ? spawner.memberOf : [...spawner.memberOf, task.step];
  if (memberOf.length > limits.stepsOfBranch) {
    refuse(
      `${at}.step`,
      `is the ${memberOf.length}th step in a row; at most ${limits.stepsOfBranch} are allowed.`,
    );
  }
  const ownLabels = Object.keys(task.labels).length > 0;
  const labels = ownLabels ? { ...spawner.runLabels, ...task.labels } : null;
  if (labels && Object.keys(labels).length > limits.labels) {
    refuse(`${at}.labels`, `and the run's are more than ${limits.labels} labels, which are allowed.`);
  }
  return {
    id: newUuid(),
    run_id: spawner.runId,
    parent_task_id: spawner.taskId,
    step: task.step,
    member_of: memberOf.length > 1 ? memberOf : null,
    agent_id: agentId,
    priority: task.priority ?? spawner.priority,
    serial_key: task.serialKey,
    input: task.input === null ? null : { value: task.input },
    depends_on: task.dependsOn.length > 0 ? task.dependsOn : null,
    runs_when: task.when,
    optional: task.optional,
    max_attempts: task.maxAttempts,
    estimated_tokens: task.estimatedTokens,
    labels,
    available_at: task.availableAt,
  };
}

/** Nobody may wait for a step that is not over before itself. */
function checkCycles(rows: readonly SpawnedRow[], run: SpawningRun): void {
  const added = new Map<string, Set<string>>();
  for (const row of rows) addWaits(added, membersOf(row), row.depends_on ?? []);
  if (added.size === 0) return;
  const cycle = new WaitGraph(run.waits, added).findCycle(added.keys());
  if (!cycle) return;
  const closes = rows.findIndex(
    (row) =>
      row.depends_on?.some((step) =>
        cycle.some((from, n) => membersOf(row).includes(from) && cycle[n + 1] === step),
      ) ?? false,
  );
  refuse(`spawn[${closes}].dependsOn`, `makes steps wait for each other in a circle: ${cycle.join(' -> ')}.`);
}

/** The steps that are not over before it is. */
export const membersOf = (row: SpawnedRow): string[] => row.member_of ?? [row.step];

const quote = (name: string): string => JSON.stringify(name);

function refuse(field: string, why: string): never {
  throw new InvalidInputError(field, `${field} ${why}`);
}
