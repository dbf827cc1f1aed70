import type { StepCondition } from '../domain/job-definition.ts';

type State = 'BLOCKED' | 'OPEN' | 'COMPLETED' | 'FAILED' | 'CANCELLED';

/** A task of a run as far as its dependents care. */
export interface TaskNode {
  id: string;
  step: string;
  state: State;
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

export const isOver = (state: State): boolean => state !== 'BLOCKED' && state !== 'OPEN';
/** The failure of an optional step fails none of its dependents. */
export const isSatisfied = (task: Pick<TaskNode, 'state' | 'optional'>): boolean =>
  task.state === 'COMPLETED' || (isOver(task.state) && task.optional);

/** Decides what follows for the blocked tasks of a run, through all steps that fail because of others that fail. */
export function resolveDependents<Task extends TaskNode>(tasks: readonly Task[]): Resolved<Task> {
  const nodes = tasks.map((task) => ({ task, step: task.step, state: task.state, optional: task.optional }));
  const byStep = new Map<string, Pick<TaskNode, 'step' | 'state' | 'optional'>[]>();
  for (const node of nodes) byStep.set(node.step, [...(byStep.get(node.step) ?? []), node]);
  const resolved: Resolved<Task> = { unblocked: [], failed: [] };
  for (let changed = true; changed; ) {
    changed = false;
    for (const node of nodes) {
      if (node.state !== 'BLOCKED') continue;
      const dependencies = node.task.dependsOn.flatMap((step) => byStep.get(step) ?? []);
      if (!dependencies.every((dependency) => isOver(dependency.state))) continue;
      const broken = dependencies.filter((dependency) => !isSatisfied(dependency));
      if (node.task.when === 'DEPENDENCIES_COMPLETED' && broken.length > 0) {
        node.state = 'FAILED';
        resolved.failed.push({ task: node.task, steps: [...new Set(broken.map(({ step }) => step))] });
        changed = true;
      } else {
        node.state = 'OPEN';
        resolved.unblocked.push(node.task);
      }
    }
  }
  return resolved;
}

/** The status of a run all of whose tasks are terminal. */
export function finishedRunStatus(
  tasks: readonly { state: State; optional: boolean }[],
  cancelRequested: boolean,
): 'COMPLETED' | 'FAILED' | 'CANCELLED' {
  const cancelled = tasks.some((task) => task.state === 'CANCELLED');
  if (cancelRequested && cancelled) return 'CANCELLED';
  if (tasks.some((task) => task.state === 'FAILED' && !task.optional)) return 'FAILED';
  return cancelled ? 'CANCELLED' : 'COMPLETED';
}
