import type { StepCondition } from '../domain/job-definition.ts';
import { isTerminal, type TaskState } from '../domain/status.ts';

/** A task of a run as far as its dependents care. */
export interface TaskNode {
  id: string;
  step: string;
  /** Its own step and those of the tasks above it. */
  memberOf: readonly string[];
  state: TaskState;
  dependsOn: readonly string[];
  when: StepCondition;
  optional: boolean;
}

export interface Resolved<Task> {
  /** Blocked tasks whose dependencies are over and which may run. */
  unblocked: Task[];
  /** Blocked tasks that cannot run any more, with the steps that did not complete. */
  failed: { task: Task; steps: string[] }[];
}

/** The failure of an optional step fails none of its dependents. */
export const isSatisfied = (task: Pick<TaskNode, 'state' | 'optional'>): boolean =>
  task.state === 'COMPLETED' || (isTerminal(task.state) && task.optional);

interface Count {
  /** Members of the step that are not terminal. */
  open: number;
  /** Members that ended other than COMPLETED and are not optional. */
  broken: number;
}

/**
 * Decides what follows for blocked tasks from the counts of the steps that they depend on. What fails may end a step for
 * others: that is for the next look.
 */
export function resolveByCounts<Task extends TaskNode>(
  blocked: readonly Task[],
  countOf: (task: Task, step: string) => Count | null | undefined,
): Resolved<Task> {
  const resolved: Resolved<Task> = { unblocked: [], failed: [] };
  for (const task of blocked) {
    const counts = task.dependsOn.map((step) => countOf(task, step));
    if (counts.some((count) => count && count.open > 0)) continue;
    const broken = task.dependsOn.filter((_, i) => (counts[i]?.broken ?? 0) > 0);
    if (task.when === 'DEPENDENCIES_COMPLETED' && broken.length > 0)
      resolved.failed.push({ task, steps: broken });
    else resolved.unblocked.push(task);
  }
  return resolved;
}

/** Decides what follows for the blocked tasks of a whole run, through all steps that fail because of others that fail. */
export function resolveDependents<Task extends TaskNode>(tasks: readonly Task[]): Resolved<Task> {
  const counts = new Map<string, Count>();
  const add = (task: Task, open: number, broken: number): void => {
    for (const step of task.memberOf) {
      const count = counts.get(step) ?? { open: 0, broken: 0 };
      counts.set(step, { open: count.open + open, broken: count.broken + broken });
    }
  };
  for (const task of tasks) {
    if (!isTerminal(task.state)) add(task, 1, 0);
    else if (!isSatisfied(task)) add(task, 0, 1);
  }
  const resolved: Resolved<Task> = { unblocked: [], failed: [] };
  for (let blocked = tasks.filter(({ state }) => state === 'BLOCKED'); ; ) {
    const { unblocked, failed } = resolveByCounts(blocked, (_, step) => counts.get(step));
    resolved.unblocked.push(...unblocked);
    resolved.failed.push(...failed);
    if (failed.length === 0) return resolved;
    for (const { task } of failed) add(task, -1, task.optional ? 0 : 1);
    const decided = new Set([...unblocked, ...failed.map(({ task }) => task)]);
    blocked = blocked.filter((task) => !decided.has(task));
  }
}

/** The status of a run all of whose tasks are terminal. */
export function finishedRunStatus(
  tasks: readonly { state: TaskState; optional: boolean }[],
  cancelRequested: boolean,
): 'COMPLETED' | 'FAILED' | 'CANCELLED' {
  const cancelled = tasks.some((task) => task.state === 'CANCELLED');
  if (cancelRequested && cancelled) return 'CANCELLED';
  if (tasks.some((task) => task.state === 'FAILED' && !task.optional)) return 'FAILED';
  return cancelled ? 'CANCELLED' : 'COMPLETED';
}
