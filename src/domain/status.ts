export type TaskStatus = 'BLOCKED' | 'ENQUEUED' | 'PROCESSING' | 'COMPLETED' | 'FAILED' | 'CANCELLED';
/** A task's state as it is stored: OPEN is ENQUEUED or PROCESSING, which its place says. */
export type TaskState = 'BLOCKED' | 'OPEN' | 'COMPLETED' | 'FAILED' | 'CANCELLED';
export type RunStatus = 'QUEUED' | 'RUNNING' | 'CANCELLING' | 'COMPLETED' | 'FAILED' | 'CANCELLED';
export type AttemptStatus =
  | 'RUNNING'
  | 'COMPLETED'
  | 'FAILED'
  | 'CANCELLED'
  | 'LOST'
  | 'RELEASED'
  | 'TIMED_OUT';
/** What a worker can report. */
export type ResultStatus = 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'RELEASED';

const terminal = new Set<string>(['COMPLETED', 'FAILED', 'CANCELLED']);
/** A terminal task or run changes no more by itself. */
export const isTerminal = (status: TaskStatus | TaskState | RunStatus): boolean => terminal.has(status);
