import { columnOf, finishedStatus, type ModelRun, type ModelTask, over } from './lifecycle-rules.ts';
import { type Cell, type TaskState, taskTable } from './lifecycle-table.ts';

/** Tasks, runs and serial keys as the model has them, and what follows when a task moves. */
export class LifecycleState {
  now = 0;
  tasks: ModelTask[] = [];
  runs: ModelRun[] = [];
  /** By agent, the tasks of the serial key in their order, first the one that keeps the others waiting. */
  keys: Record<string, string[]> = {};

  /** The task goes where the cell says; where that leaves a choice, to `chosen`. */
  protected go(task: ModelTask, { to }: Cell, chosen?: TaskState): void {
    if (to.length === 0) return;
    const state = to.length === 1 && (chosen === undefined || over.has(to[0] as TaskState)) ? to[0] : chosen;
    if (state === undefined || !to.includes(state))
      throw new Error(`The table sends a ${task.state} task to ${to.join(' or ')}, and not to ${state}.`);
    task.state = state;
    if (over.has(state)) this.leaveKey(task);
  }

  protected leaveKey(task: ModelTask): void {
    const { agent } = task.step;
    const before = this.keys[agent] ?? [];
    const after = before.filter((id) => id !== task.id);
    const wasFirst = before[0] === task.id;
    this.keys[agent] = after;
    const next = this.tasks.find(({ id }) => id === after[0]);
    if (wasFirst && next) this.go(next, taskTable.cell('it is first of its serial key', next.state));
  }

  /** Where an enqueued task waits. It takes its place behind its key once it may run. */
  protected queuePlace(task: ModelTask, delay: number): 'delayed' | 'behind' | 'ready' {
    if (delay > 0) return 'delayed';
    if (!task.step.serialKey) return 'ready';
    const key = (this.keys[task.step.agent] ??= []);
    if (!key.includes(task.id)) key.push(task.id);
    return key[0] === task.id ? 'ready' : 'behind';
  }

  /** What the ends of tasks mean for the steps that wait for them and for their runs. */
  protected follow(tasks: readonly ModelTask[]): void {
    for (const task of tasks.filter(({ state }) => over.has(state))) {
      for (const dependent of this.dependentsOf(task))
        this.dependencyOver(dependent, task.state === 'completed');
    }
    for (const run of new Set(tasks.map((task) => this.runOf(task)))) {
      const states = this.tasks.filter((task) => this.runOf(task) === run).map(({ state }) => state);
      if (states.every((state) => over.has(state))) run.status = finishedStatus(states, run.cancelRequested);
      else if (run.cancelRequested) run.status = 'CANCELLING';
    }
  }

  protected dependencyOver(task: ModelTask, completed: boolean): void {
    const renders = task.step.input === undefined || task.state !== 'blocked';
    const completes = renders
      ? 'its dependencies complete'
      : 'they complete, but its input cannot be rendered';
    const event = completed ? completes : 'a dependency does not complete';
    const cell = taskTable.cell(event, columnOf(task));
    if (cell.to.length === 0) return;
    task.sequence++;
    if (completed && !renders) {
      task.letter = { failCount: (task.letter?.failCount ?? 0) + 1, replayed: false };
      this.go(task, cell);
    } else if (completed || task.step.when === 'DEPENDENCIES_FINISHED') {
      this.go(task, cell, this.queuePlace(task, 0));
    } else {
      task.byDependency = true;
      this.go(task, cell, 'failed');
    }
  }

  protected runOf(task: ModelTask): ModelRun {
    return this.runs[task.run] as ModelRun;
  }

  protected dependencyOf(task: ModelTask): ModelTask | undefined {
    return this.tasks.find((other) => other.run === task.run && other.step.name === task.step.dependsOn);
  }

  protected dependentsOf(task: ModelTask): ModelTask[] {
    return this.tasks.filter((other) => other.run === task.run && other.step.dependsOn === task.step.name);
  }
}
