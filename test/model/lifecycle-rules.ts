import { type AgentKind, agents, type Form, type FormName, leaseSeconds, type StepKind } from './kinds.ts';
import { counts, type TaskState } from './lifecycle-table.ts';

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
  priority: number;
  /** It is over and was hidden. */
  deleted: boolean;
  /** Failed because a step that it needs did not complete. */
  byDependency: boolean;
  letter: { failCount: number; replayed: boolean } | null;
}
export interface ModelRun {
  id: string;
  status: string;
  cancelRequested: boolean;
}

export const over = new Set<TaskState>(['completed', 'failed', 'cancelled']);
export const publicStatus = (state: TaskState): string =>
  ({
    ready: 'ENQUEUED',
    delayed: 'ENQUEUED',
    behind: 'ENQUEUED',
    processing: 'PROCESSING',
    stopping: 'PROCESSING',
  })[state as string] ?? state.toUpperCase();

export const newTask = (id: string, run: number, step: StepKind, availableAt: number): ModelTask => ({
  id,
  run,
  step,
  state: 'blocked',
  sequence: 1,
  attempts: [],
  forgiven: 0,
  availableAt,
  priority: 0,
  deleted: false,
  byDependency: false,
  letter: null,
});
export const newAttempt = (task: ModelTask, id: string, now: number): ModelAttempt => ({
  id,
  number: task.attempts.length + 1,
  status: 'RUNNING',
  counted: false,
  late: false,
  heard: null,
  expiresAt: now + leaseSeconds,
  timeoutAt: now + agentOf(task).timeoutSeconds,
  graceEndsAt: null,
});

/** Which column of the table of tasks a task is in. */
export const columnOf = ({ deleted, state }: ModelTask): string => (deleted ? 'deleted' : state);

/** Which row of it a retry is. */
export function retryEvent(task: ModelTask, run: ModelRun, needed: ModelTask | undefined): string {
  if (run.status === 'CANCELLING') return 'retryTask, but its run is being cancelled';
  const startsNow =
    (task.state === 'failed' || task.state === 'cancelled') &&
    !task.deleted &&
    needed !== undefined &&
    over.has(needed.state);
  if (startsNow && needed.state === 'completed' && task.step.input !== undefined)
    return 'retryTask, but its input cannot be rendered';
  const hopeless = startsNow && task.step.when !== 'DEPENDENCIES_FINISHED' && needed.state !== 'completed';
  return hopeless ? 'retryTask, but a step that it needs did not complete' : 'retryTask';
}

/** Which row of the table of attempts a report is. */
export function reportEvent(task: ModelTask, attempt: ModelAttempt, form: Form): string {
  const current = attempt.status === 'RUNNING';
  if (form.status === 'FAILED') {
    const triedAgain = current
      ? isTriedAgain(task, form.error?.code ?? '', form.error?.kind)
      : form.error?.kind !== 'PERMANENT';
    return triedAgain ? 'FAILED, tried again' : 'FAILED, for good';
  }
  if (form.status !== 'RELEASED' || !current) return form.status;
  const spent = countedSoFar(task) + Number(isCounted(task, 'RELEASED', null));
  return isCounted(task, 'RELEASED', null) && spent >= maxAttempts(task) ? 'RELEASED, too often' : 'RELEASED';
}

/** Which row of it a sweep is. */
export function sweepEvent(task: ModelTask, attempt: ModelAttempt, now: number): string {
  if (attempt.status !== 'RUNNING') return 'swept, with nothing to find';
  if (attempt.timeoutAt <= now)
    return isTriedAgain(task, 'TIMED_OUT') ? 'swept, timed out, tried again' : 'swept, timed out for good';
  if (attempt.expiresAt < now) {
    const earlier = history(task).slice(0, -1);
    const lostInRow = earlier.length - 1 - earlier.findLastIndex(({ status }) => status !== 'LOST');
    return lostInRow === 4 ? 'swept, lease expired the fifth time in a row' : 'swept, lease expired';
  }
  return attempt.graceEndsAt !== null && attempt.graceEndsAt < now
    ? 'swept, grace time over'
    : 'swept, with nothing to find';
}

function isTriedAgain(task: ModelTask, code: string, kind?: string): boolean {
  const override = overrideOf(task, code);
  if (!(override ? override.retry : kind !== 'PERMANENT')) return false;
  return countedSoFar(task) + Number(isCounted(task, 'FAILED', code, kind)) < maxAttempts(task);
}

/** Whether an attempt that ends so counts against maxAttempts. */
export function isCounted(task: ModelTask, status: string, code: string | null, kind?: string): boolean {
  const words = counts.get(status);
  if (words !== 'unless spared') return words === 'yes';
  const override = overrideOf(task, code);
  const spared =
    status === 'RELEASED' || (override ? override.countsAttempt === false : kind === 'RATE_LIMITED');
  const ended = history(task).filter((a) => a.status !== 'RUNNING' && a.status !== 'LOST');
  const uncountedInRow = ended.length - 1 - ended.findLastIndex(({ counted }) => counted);
  return !spared || uncountedInRow >= 20;
}

function countedSoFar(task: ModelTask): number {
  return history(task).filter(({ counted, status }) => counted && status !== 'RUNNING').length;
}

function history(task: ModelTask): ModelAttempt[] {
  return task.attempts.slice(task.forgiven);
}

/** Which of its columns an attempt is in. */
export function attemptState(task: ModelTask, attempt: ModelAttempt): string {
  if (attempt.heard !== null) return 'heard';
  if (attempt.status === 'RUNNING') return task.state === 'stopping' ? 'asked to stop' : 'current';
  if (over.has(task.state)) return 'unheard, task over';
  if (task.state === 'blocked') return 'lost, task blocked';
  return task.state === 'processing' || task.state === 'stopping'
    ? 'lost, newer attempt'
    : 'lost, task waits';
}

export const graceSeconds = 30;
const agentOf = (task: ModelTask): AgentKind => agents[task.step.agent];
const maxAttempts = (task: ModelTask): number => task.step.maxAttempts ?? agentOf(task).maxAttempts;
const overrideOf = (task: ModelTask, code: string | null) =>
  agentOf(task).overrides.find((override) => override.code === code);
export const delayOf = (task: ModelTask, code: string | null, form: Form | null): number =>
  overrideOf(task, code)?.delaySeconds ?? form?.error?.retryAfterSeconds ?? agentOf(task).delaySeconds;
export const isOver = ({ status }: ModelRun): boolean =>
  ['COMPLETED', 'FAILED', 'CANCELLED'].includes(status);

export function finishedStatus(states: readonly TaskState[], cancelRequested: boolean): string {
  const cancelled = states.includes('cancelled');
  if (cancelRequested && cancelled) return 'CANCELLED';
  if (states.includes('failed')) return 'FAILED';
  return cancelled ? 'CANCELLED' : 'COMPLETED';
}
