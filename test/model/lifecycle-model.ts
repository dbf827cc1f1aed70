import {
  type AgentKind,
  agents,
  type Form,
  type FormName,
  forms,
  leaseSeconds,
  type StepKind,
} from './kinds.ts';
import {
  attemptState,
  columnOf,
  delayOf,
  graceSeconds,
  isCounted,
  isOver,
  type ModelAttempt,
  type ModelRun,
  type ModelTask,
  newAttempt,
  newTask,
  over,
  reportEvent,
  retryEvent,
  sweepEvent,
} from './lifecycle-rules.ts';
import { LifecycleState } from './lifecycle-state.ts';
import { attemptTable, type Cell, taskTable } from './lifecycle-table.ts';

/**
 * What the database has to hold. Where a task goes at an event, and what is answered, comes from the tables of
 * docs/task-lifecycle.md; the model adds what they leave open by "or", from the sentences beside them.
 */
export class LifecycleModel extends LifecycleState {
  clone(): LifecycleModel {
    const { now, tasks, runs, keys } = this;
    return Object.assign(new LifecycleModel(), structuredClone({ now, tasks, runs, keys }));
  }

  get attempts(): { task: ModelTask; attempt: ModelAttempt }[] {
    const all = this.tasks.flatMap((task) => task.attempts.map((attempt) => ({ task, attempt })));
    return all.sort((a, b) => (a.attempt.id < b.attempt.id ? -1 : 1));
  }

  launch(runId: string, tasks: { id: string; step: StepKind }[], later: number): void {
    const run = this.runs.push({ id: runId, status: 'QUEUED', cancelRequested: false }) - 1;
    for (const { id, step } of tasks) {
      const task = newTask(id, run, step, this.now + later);
      this.tasks.push(task);
      if (!step.dependsOn) task.state = this.queuePlace(task, later);
    }
  }

  claim(task: ModelTask, attemptId: string): void {
    const event = task.state === 'behind' ? 'claim of its serial key in a batch' : 'claim';
    this.go(task, taskTable.cell(event, task.state));
    task.sequence++;
    task.attempts.push(newAttempt(task, attemptId, this.now));
    const run = this.runOf(task);
    if (run.status === 'QUEUED') run.status = 'RUNNING';
  }

  /** What a claim of this task would bring along: the tasks that wait behind it, if its agent takes them in batches. */
  batchOf(task: ModelTask): ModelTask[] {
    const { batches = false }: AgentKind = agents[task.step.agent];
    const behind = (this.keys[task.step.agent] ?? []).map((id) =>
      this.tasks.find((other) => other.id === id),
    );
    return batches && task.state === 'ready'
      ? (behind.filter((other) => other?.state === 'behind') as ModelTask[])
      : [];
  }

  /** A claim that did not choose these: the table must say that it never does. */
  notClaimed(tasks: readonly ModelTask[]): void {
    for (const task of tasks) {
      if (task.state !== 'ready' && taskTable.cell('claim', columnOf(task)).to.length > 0)
        throw new Error(`The table says that a ${task.state} task is claimed.`);
    }
  }

  due(): ModelTask[] {
    return this.tasks.filter(({ state, availableAt }) => state === 'delayed' && availableAt <= this.now);
  }

  timeComes(task: ModelTask): void {
    this.go(task, taskTable.cell('its time comes', task.state), this.queuePlace(task, 0));
  }

  heartbeat({ task, attempt }: { task: ModelTask; attempt: ModelAttempt }): string | null {
    const { answer } = attemptTable.cell('heartbeat', attemptState(task, attempt));
    if (answer !== 'STALE') attempt.expiresAt = this.now + leaseSeconds;
    return answer;
  }

  report({ task, attempt }: { task: ModelTask; attempt: ModelAttempt }, name: FormName): string | null {
    const form: Form = forms[name];
    const event = attempt.heard === name ? 'the same report again' : reportEvent(task, attempt, form);
    const cell = attemptTable.cell(event, attemptState(task, attempt));
    const current = attempt.status === 'RUNNING';
    if (cell.answer === 'APPLIED' || cell.answer === 'SUPERSEDED') {
      attempt.late = !current;
      attempt.heard = name;
    }
    this.#endAttempt(task, attempt, cell, form.error?.code ?? null, form);
    return cell.answer;
  }

  sweep({ task, attempt }: { task: ModelTask; attempt: ModelAttempt }): string {
    const cell = attemptTable.cell(sweepEvent(task, attempt, this.now), attemptState(task, attempt));
    this.#endAttempt(task, attempt, cell, cell.attempt === 'TIMED_OUT' ? 'TIMED_OUT' : null, null);
    return cell.attempt === null ? 'NOTHING' : 'APPLIED';
  }

  cancelTask(task: ModelTask): string | null {
    const cell = taskTable.cell('cancelTask', columnOf(task));
    this.#cancel(task, cell);
    this.follow([task]);
    return cell.answer;
  }

  cancelRun(index: number): string {
    const run = this.runs[index] as ModelRun;
    if (isOver(run)) return 'IllegalState';
    const own = this.tasks.filter((task) => task.run === index);
    const before = run.cancelRequested;
    run.cancelRequested = true;
    if (!before) {
      for (const task of own) {
        const event = task.step.cancellable === false ? 'cancelRun, but it is protected' : 'cancelRun';
        this.#cancel(task, taskTable.cell(event, columnOf(task)));
      }
    }
    this.follow(own);
    return 'Success';
  }

  retry(task: ModelTask): string | null {
    const run = this.runOf(task);
    const cell = taskTable.cell(retryEvent(task, run, this.dependencyOf(task)), columnOf(task));
    if (cell.to.length > 0) {
      if (isOver(run)) Object.assign(run, { status: 'RUNNING', cancelRequested: false });
      this.#reopen(task, cell);
      for (const dependent of this.dependentsOf(task)) {
        if (dependent.byDependency)
          this.#reopen(
            dependent,
            taskTable.cell('the dependency that failed it is retried', columnOf(dependent)),
          );
      }
    }
    return cell.answer;
  }

  runNow(task: ModelTask): string | null {
    const cell = taskTable.cell('runTaskNow', columnOf(task));
    if (cell.to.length > 0) {
      task.priority += 100;
      this.go(task, cell, this.queuePlace(task, 0));
    }
    return cell.answer;
  }

  setPriority(task: ModelTask, priority: number): string | null {
    const { answer } = taskTable.cell('setTaskPriority', columnOf(task));
    if (answer === 'Success') task.priority = priority;
    return answer;
  }

  delete(task: ModelTask): string | null {
    const { answer } = taskTable.cell('deleteTask', columnOf(task));
    if (answer === 'Success') Object.assign(task, { deleted: true, letter: null });
    return answer;
  }

  #reopen(task: ModelTask, cell: Cell): void {
    if (cell.to.length === 0) return;
    task.priority += 100;
    const needed = this.dependencyOf(task);
    task.availableAt = this.now;
    task.forgiven = task.attempts.length;
    task.byDependency = false;
    task.sequence++;
    if (task.letter) task.letter.replayed = true;
    this.go(task, cell, needed && !over.has(needed.state) ? 'blocked' : this.queuePlace(task, 0));
  }

  #cancel(task: ModelTask, cell: Cell): void {
    const current = task.attempts.at(-1);
    if (cell.to.includes('stopping') && current) current.graceEndsAt = this.now + graceSeconds;
    if (cell.to.includes('cancelled')) task.sequence++;
    this.go(task, cell);
  }

  #endAttempt(
    task: ModelTask,
    attempt: ModelAttempt,
    cell: Cell,
    code: string | null,
    form: Form | null,
  ): void {
    if (cell.attempt !== null) {
      attempt.counted = isCounted(task, cell.attempt, code, form?.error?.kind);
      attempt.status = cell.attempt;
    }
    if (cell.newerCancelled) Object.assign(task.attempts.at(-1) as ModelAttempt, { status: 'CANCELLED' });
    if (cell.to.length === 0) return;
    task.sequence++;
    if (cell.to.some((state) => over.has(state))) {
      this.go(task, cell);
      if (task.state === 'failed') {
        task.letter = { failCount: (task.letter?.failCount ?? 0) + 1, replayed: false };
      }
      this.follow([task]);
      return;
    }
    const delay = cell.attempt === 'FAILED' || cell.attempt === 'TIMED_OUT' ? delayOf(task, code, form) : 0;
    if (delay > 0) task.availableAt = this.now + delay;
    this.go(task, cell, this.queuePlace(task, delay));
  }
}
