import { isTerminal, type RunStatus, type TaskStatus } from './status.ts';

export type TaskAction = 'CANCEL' | 'RUN_NOW' | 'RETRY' | 'DELETE' | 'SET_PRIORITY';
export type RunAction = 'CANCEL' | 'RERUN';

/** What an operator can do to a task. */
export function taskActions(task: {
  status: TaskStatus;
  cancelRequested: boolean;
  /** It is scheduled, or backs off. */
  isDelayed: boolean;
  /** Nothing refuses a retry, where it failed or was cancelled (whyNotRetried). */
  isRetriable: boolean;
}): TaskAction[] {
  if (task.status === 'COMPLETED') return ['DELETE'];
  if (isTerminal(task.status)) return task.isRetriable ? ['RETRY', 'DELETE'] : ['DELETE'];
  const actions: TaskAction[] = task.cancelRequested ? [] : ['CANCEL'];
  if (task.isDelayed) actions.push('RUN_NOW');
  return [...actions, 'SET_PRIORITY'];
}

/** What can be done to a run: cancelling is an operator's, a rerun is a launch. */
export function runActions(run: { status: RunStatus; cancelRequested: boolean }): RunAction[] {
  if (isTerminal(run.status)) return ['RERUN'];
  return run.cancelRequested ? [] : ['CANCEL'];
}
