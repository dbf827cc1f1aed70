import type { TaskState } from '../domain/status.ts';

/** A task of a run that is over, as far as a rerun cares. */
export interface OldTask {
  id: string;
  /** The task whose result spawned it. */
  parentId: string | null;
  step: string;
  state: TaskState;
  dependsOn: readonly string[];
  deleted: boolean;
}

/** A task of the new run: executed again, or taken over as it completed. */
export interface RerunTask {
  oldId: string;
  oldParentId: string | null;
  takenOver: boolean;
}

/**
 * Decides what a rerun executes. All: every step once more, and they spawn what they spawn. Only what failed: the failed
 * and cancelled tasks and whatever waits for them, however that ended; the rest is taken over. What a task spawned comes
 * again from the task, when that is executed again. Empty: nothing failed.
 */
export function planRerun(tasks: readonly OldTask[], onlyFailed: boolean): RerunTask[] {
  if (!onlyFailed) return tasks.filter((task) => task.parentId === null).map((task) => planned(task, false));
  // What was erased can be neither taken over nor, where no step says what its input was, executed.
  const usable = tasks.filter((task) => !task.deleted || task.parentId === null);
  const failed = usable.filter((task) => task.state !== 'COMPLETED');
  if (failed.length === 0) return [];
  const again = withDependents([...failed, ...usable.filter((task) => task.deleted)], usable);
  const isSpawnedAgain = spawnedBy(again, tasks);
  return usable.filter((task) => !isSpawnedAgain(task)).map((task) => planned(task, !again.has(task.id)));
}

const planned = ({ id, parentId }: OldTask, takenOver: boolean): RerunTask => ({
  oldId: id,
  oldParentId: parentId,
  takenOver,
});

/** The ids of these tasks and of all that wait for them. Who waits for a step waits for what its tasks spawned, too. */
function withDependents(first: readonly OldTask[], tasks: readonly OldTask[]): Set<string> {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const dependents = new Map<string, OldTask[]>();
  for (const task of tasks) {
    for (const step of task.dependsOn) {
      const waiting = dependents.get(step);
      if (waiting) waiting.push(task);
      else dependents.set(step, [task]);
    }
  }
  const found = new Set<string>();
  const climbed = new Set<string>();
  const open = [...first];
  for (let task = open.pop(); task; task = open.pop()) {
    found.add(task.id);
    // Each step that the task and those above it belong to is followed once.
    for (let at: OldTask | undefined = task; at && !climbed.has(at.id); ) {
      climbed.add(at.id);
      for (const dependent of dependents.get(at.step) ?? []) open.push(dependent);
      dependents.delete(at.step);
      at = at.parentId === null ? undefined : byId.get(at.parentId);
    }
  }
  return found;
}

function spawnedBy(again: ReadonlySet<string>, tasks: readonly OldTask[]): (task: OldTask) => boolean {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const known = new Map<string, boolean>();
  const isSpawned = (task: OldTask): boolean => {
    // From the root down: a tree of spawned tasks can be deeper than the stack.
    const path: OldTask[] = [];
    for (let at: OldTask | undefined = task; at && !known.has(at.id); ) {
      path.push(at);
      at = at.parentId === null ? undefined : byId.get(at.parentId);
    }
    for (const at of path.reverse()) {
      const { parentId } = at;
      known.set(at.id, parentId !== null && (again.has(parentId) || known.get(parentId) === true));
    }
    return known.get(task.id) === true;
  };
  return isSpawned;
}
