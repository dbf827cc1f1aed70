export type TaskStatus = 'BLOCKED' | 'ENQUEUED' | 'PROCESSING' | 'COMPLETED' | 'FAILED' | 'CANCELLED';
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
export const isTerminal = (status: TaskStatus | RunStatus): boolean => terminal.has(status);
