import { type AgentKind, agents, type Form, type FormName, forms, leaseSeconds, type StepKind } from './kinds.ts';
import { attemptTable, type Cell, counts, type TaskState, taskTable } from './lifecycle-table.ts';

export interface ModelAttempt {
  id: string;
  number: number;
  status: string;
  counted: boolean;
  late: boolean;
  heard: FormName | null;
  expiresAt: number;
  timeoutAt: number;
  graceEndsAt: number | null;
}
export interface ModelTask {
  id: string;
  run: number;
  step: StepKind;
  state: TaskState;
  sequence: number;
  attempts: ModelAttempt[];
  /** Attempts before the last retry, which do not count any more. */
  forgiven: number;
  availableAt: number;
  /** Failed because a step that it needs did not complete. */
  byDependency: boolean;
  letter: { failCount: number; replayed: boolean } | null;
}
export interface ModelRun {
  id: string;
  status: string;
  cancelRequested: boolean;
}

const over = new Set<TaskState>(['completed', 'failed', 'cancelled']);
export const publicStatus = (state: TaskState): string =>
  ({ ready: 'ENQUEUED', delayed: 'ENQUEUED', behind: 'ENQUEUED', processing: 'PROCESSING', stopping: 'PROCESSING' })[
    state as string
  ] ?? state.toUpperCase();

/**
 * What the database has to hold. Where a task goes at an event, and what is answered, comes from the tables of
 * docs/task-lifecycle.md; the model adds what they leave open by "or", from the sentences beside them.
 */
export class LifecycleModel {
  now = 0;
  tasks: ModelTask[] = [];
  runs: ModelRun[] = [];
  /** The tasks of the serial key in their order, first the one that keeps the others waiting. */
  key: string[] = [];

  clone(): LifecycleModel {
    return Object.assign(new LifecycleModel(), structuredClone({ ...this }));
  }

  get attempts(): { task: ModelTask; attempt: ModelAttempt }[] {
    const all = this.tasks.flatMap((task) => task.attempts.map((attempt) => ({ task, attempt })));
    return all.sort((a, b) => (a.attempt.id < b.attempt.id ? -1 : 1));
  }

  launch(runId: string, tasks: { id: string; step: StepKind }[], later: number): void {
    const run = this.runs.push({ id: runId, status: 'QUEUED', cancelRequested: false }) - 1;
    for (const { id, step } of tasks) {
      const task: ModelTask = {
        id, run, step, state: 'blocked', sequence: 1, attempts: [], forgiven: 0,
        availableAt: this.now + later, byDependency: false, letter: null,
      };
      this.tasks.push(task);
      if (!step.dependsOn) task.state = this.#queuePlace(task, later);
    }
  }

  claim(task: ModelTask, attemptId: string): void {
    this.#go(task, taskTable.cell('claim', task.state));
    task.sequence++;
    const { timeoutSeconds } = agentOf(task);
    task.attempts.push({
      id: attemptId, number: task.attempts.length + 1, status: 'RUNNING', counted: false, late: false, heard: null,
      expiresAt: this.now + leaseSeconds, timeoutAt: this.now + timeoutSeconds, graceEndsAt: null,
    });
    const run = this.#runOf(task);
    if (run.status === 'QUEUED') run.status = 'RUNNING';
  }

  /** A claim that did not choose these: the table must say that it never does. */
  notClaimed(tasks: readonly ModelTask[]): void {
    for (const task of tasks) {
      if (task.state !== 'ready' && taskTable.cell('claim', task.state).to.length > 0)
        throw new Error(`The table says that a ${task.state} task is claimed.`);
    }
  }

  due(): ModelTask[] {
    return this.tasks.filter(({ state, availableAt }) => state === 'delayed' && availableAt <= this.now);
  }

  timeComes(task: ModelTask): void {
    this.#go(task, taskTable.cell('its time comes', task.state), this.#queuePlace(task, 0));
  }

  heartbeat({ task, attempt }: { task: ModelTask; attempt: ModelAttempt }): string | null {
    const { answer } = attemptTable.cell('heartbeat', this.#stateOf(task, attempt));
    if (answer !== 'STALE') attempt.expiresAt = this.now + leaseSeconds;
    return answer;
  }

  report({ task, attempt }: { task: ModelTask; attempt: ModelAttempt }, name: FormName): string | null {
    const form: Form = forms[name];
    const event = attempt.heard === name ? 'the same report again' : this.#reportEvent(task, attempt, form);
    const cell = attemptTable.cell(event, this.#stateOf(task, attempt));
    const current = attempt.status === 'RUNNING';
    if (cell.answer === 'APPLIED' || cell.answer === 'SUPERSEDED') {
      attempt.late = !current;
      attempt.heard = name;
    }
    this.#endAttempt(task, attempt, cell, form.error?.code ?? null, form);
    return cell.answer;
  }

  sweep({ task, attempt }: { task: ModelTask; attempt: ModelAttempt }): string {
    const cell = attemptTable.cell(this.#sweepEvent(task, attempt), this.#stateOf(task, attempt));
    this.#endAttempt(task, attempt, cell, cell.attempt === 'TIMED_OUT' ? 'TIMED_OUT' : null, null);
    return cell.attempt === null ? 'NOTHING' : 'APPLIED';
  }

  cancelTask(task: ModelTask): string | null {
    const cell = taskTable.cell('cancelTask', task.state);
    this.#cancel(task, cell);
    this.#follow([task]);
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
        this.#cancel(task, taskTable.cell(event, task.state));
      }
    }
    this.#follow(own);
    return 'Success';
  }

  retry(task: ModelTask): string | null {
    const run = this.#runOf(task);
    const needed = this.#dependencyOf(task);
    const hopeless =
      (task.state === 'failed' || task.state === 'cancelled') && task.step.when !== 'DEPENDENCIES_FINISHED' &&
      needed && over.has(needed.state) && needed.state !== 'completed';
    const cell = taskTable.cell(
      run.status === 'CANCELLING' ? 'retryTask, but its run is being cancelled'
        : hopeless ? 'retryTask, but a step that it needs did not complete' : 'retryTask',
      task.state,
    );
    if (cell.to.length > 0) {
      if (isOver(run)) Object.assign(run, { status: 'RUNNING', cancelRequested: false });
      this.#reopen(task, cell);
      for (const dependent of this.#dependentsOf(task)) {
        if (dependent.byDependency)
          this.#reopen(dependent, taskTable.cell('the dependency that failed it is retried', dependent.state));
      }
    }
    return cell.answer;
  }

  #reopen(task: ModelTask, cell: Cell): void {
    const needed = this.#dependencyOf(task);
    task.availableAt = this.now;
    task.forgiven = task.attempts.length;
    task.byDependency = false;
    task.sequence++;
    if (task.letter) task.letter.replayed = true;
    this.#go(task, cell, needed && !over.has(needed.state) ? 'blocked' : this.#queuePlace(task, 0));
  }

  #cancel(task: ModelTask, cell: Cell): void {
    const current = task.attempts.at(-1);
    if (cell.to.includes('stopping') && current) current.graceEndsAt = this.now + graceSeconds;
    if (cell.to.includes('cancelled')) task.sequence++;
    this.#go(task, cell);
  }

  #endAttempt(task: ModelTask, attempt: ModelAttempt, cell: Cell, code: string | null, form: Form | null): void {
    if (cell.attempt !== null) {
      attempt.counted = this.#counted(task, cell.attempt, code, form?.error?.kind);
      attempt.status = cell.attempt;
    }
    if (cell.newerCancelled) Object.assign(task.attempts.at(-1) as ModelAttempt, { status: 'CANCELLED' });
    if (cell.to.length === 0) return;
    task.sequence++;
    if (cell.to.some((state) => over.has(state))) {
      this.#go(task, cell);
      if (task.state === 'failed') {
        task.letter = { failCount: (task.letter?.failCount ?? 0) + 1, replayed: false };
      }
      this.#follow([task]);
      return;
    }
    const delay = cell.attempt === 'FAILED' || cell.attempt === 'TIMED_OUT' ? delayOf(task, code, form) : 0;
    if (delay > 0) task.availableAt = this.now + delay;
    this.#go(task, cell, this.#queuePlace(task, delay));
  }

  /** The task goes where the cell says; where that leaves a choice, to `chosen`. */
  #go(task: ModelTask, { to }: Cell, chosen?: TaskState): void {
    if (to.length === 0) return;
    const state = to.length === 1 && (chosen === undefined || over.has(to[0] as TaskState)) ? to[0] : chosen;
    if (state === undefined || !to.includes(state))
      throw new Error(`The table sends a ${task.state} task to ${to.join(' or ')}, and not to ${state}.`);
    task.state = state;
    if (over.has(state)) this.#leaveKey(task);
  }

  #leaveKey(task: ModelTask): void {
    const wasFirst = this.key[0] === task.id;
    this.key = this.key.filter((id) => id !== task.id);
    const next = this.tasks.find(({ id }) => id === this.key[0]);
    if (wasFirst && next) this.#go(next, taskTable.cell('it is first of its serial key', next.state));
  }

  /** Where an enqueued task waits. It takes its place behind its key once it may run. */
  #queuePlace(task: ModelTask, delay: number): 'delayed' | 'behind' | 'ready' {
    if (delay > 0) return 'delayed';
    if (!task.step.serialKey) return 'ready';
    if (!this.key.includes(task.id)) this.key.push(task.id);
    return this.key[0] === task.id ? 'ready' : 'behind';
  }

  /** What the ends of tasks mean for the steps that wait for them and for their runs. */
  #follow(tasks: readonly ModelTask[]): void {
    for (const task of tasks.filter(({ state }) => over.has(state))) {
      for (const dependent of this.#dependentsOf(task)) this.#dependencyOver(dependent, task.state === 'completed');
    }
    for (const run of new Set(tasks.map((task) => this.#runOf(task)))) {
      const states = this.tasks.filter((task) => this.#runOf(task) === run).map(({ state }) => state);
      if (states.every((state) => over.has(state))) run.status = finished(states, run.cancelRequested);
      else if (run.cancelRequested) run.status = 'CANCELLING';
    }
  }

  #dependencyOver(task: ModelTask, completed: boolean): void {
    const event = completed ? 'its dependencies complete' : 'a dependency does not complete';
    const cell = taskTable.cell(event, task.state);
    if (cell.to.length === 0) return;
    task.sequence++;
    if (completed || task.step.when === 'DEPENDENCIES_FINISHED') {
      this.#go(task, cell, this.#queuePlace(task, 0));
    } else {
      task.byDependency = true;
      this.#go(task, cell, 'failed');
    }
  }

  #reportEvent(task: ModelTask, attempt: ModelAttempt, form: Form): string {
    const current = attempt.status === 'RUNNING';
    if (form.status === 'FAILED') {
      const again = current
        ? this.#again(task, form.error?.code ?? '', form.error?.kind)
        : form.error?.kind !== 'PERMANENT';
      return again ? 'FAILED, tried again' : 'FAILED, for good';
    }
    if (form.status !== 'RELEASED' || !current) return form.status;
    const spent = this.#countedSoFar(task) + Number(this.#counted(task, 'RELEASED', null));
    return this.#counted(task, 'RELEASED', null) && spent >= maxAttempts(task) ? 'RELEASED, too often' : 'RELEASED';
  }

  #sweepEvent(task: ModelTask, attempt: ModelAttempt): string {
    if (attempt.status !== 'RUNNING') return 'swept, with nothing to find';
    if (attempt.timeoutAt <= this.now)
      return this.#again(task, 'TIMED_OUT') ? 'swept, timed out, tried again' : 'swept, timed out for good';
    if (attempt.expiresAt < this.now) {
      const earlier = this.#history(task).slice(0, -1);
      const lostInRow = earlier.length - 1 - earlier.findLastIndex(({ status }) => status !== 'LOST');
      return lostInRow === 4 ? 'swept, lease expired the fifth time in a row' : 'swept, lease expired';
    }
    return attempt.graceEndsAt !== null && attempt.graceEndsAt < this.now
      ? 'swept, grace time over'
      : 'swept, with nothing to find';
  }

  #again(task: ModelTask, code: string, kind?: string): boolean {
    const override = overrideOf(task, code);
    if (!(override ? override.retry : kind !== 'PERMANENT')) return false;
    return this.#countedSoFar(task) + Number(this.#counted(task, 'FAILED', code, kind)) < maxAttempts(task);
  }

  #counted(task: ModelTask, status: string, code: string | null, kind?: string): boolean {
    const words = counts.get(status);
    if (words !== 'unless spared') return words === 'yes';
    const override = overrideOf(task, code);
    const spared = status === 'RELEASED' || (override ? override.countsAttempt === false : kind === 'RATE_LIMITED');
    const ended = this.#history(task).filter((a) => a.status !== 'RUNNING' && a.status !== 'LOST');
    const uncountedInRow = ended.length - 1 - ended.findLastIndex(({ counted }) => counted);
    return !spared || uncountedInRow >= 20;
  }

  #countedSoFar(task: ModelTask): number {
    return this.#history(task).filter(({ counted, status }) => counted && status !== 'RUNNING').length;
  }

  #history(task: ModelTask): ModelAttempt[] {
    return task.attempts.slice(task.forgiven);
  }

  #stateOf(task: ModelTask, attempt: ModelAttempt): string {
    if (attempt.heard !== null) return 'heard';
    if (attempt.status === 'RUNNING') return task.state === 'stopping' ? 'asked to stop' : 'current';
    if (over.has(task.state)) return 'unheard, task over';
    if (task.state === 'blocked') return 'lost, task blocked';
    return task.state === 'processing' || task.state === 'stopping' ? 'lost, newer attempt' : 'lost, task waits';
  }

  #runOf(task: ModelTask): ModelRun {
    return this.runs[task.run] as ModelRun;
  }

  #dependencyOf(task: ModelTask): ModelTask | undefined {
    return this.tasks.find((other) => other.run === task.run && other.step.name === task.step.dependsOn);
  }

  #dependentsOf(task: ModelTask): ModelTask[] {
    return this.tasks.filter((other) => other.run === task.run && other.step.dependsOn === task.step.name);
  }
}

const graceSeconds = 30;
const agentOf = (task: ModelTask): AgentKind => agents[task.step.agent];
const maxAttempts = (task: ModelTask): number => task.step.maxAttempts ?? agentOf(task).maxAttempts;
const overrideOf = (task: ModelTask, code: string | null) =>
  agentOf(task).overrides.find((override) => override.code === code);
const delayOf = (task: ModelTask, code: string | null, form: Form | null): number =>
  overrideOf(task, code)?.delaySeconds ?? form?.error?.retryAfterSeconds ?? agentOf(task).delaySeconds;
const isOver = ({ status }: ModelRun): boolean => ['COMPLETED', 'FAILED', 'CANCELLED'].includes(status);

function finished(states: readonly TaskState[], cancelRequested: boolean): string {
  const cancelled = states.includes('cancelled');
  if (cancelRequested && cancelled) return 'CANCELLED';
  if (states.includes('failed')) return 'FAILED';
  return cancelled ? 'CANCELLED' : 'COMPLETED';
}
