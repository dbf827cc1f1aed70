import type { ErrorKind } from './retry-policy.ts';

/** Why an attempt or task failed. Codes are the agent's own words, but for these. */
export interface ExecutionError {
  code: string;
  kind: ErrorKind;
  message: string | null;
}

/** A lease was lost as often in a row as is tolerated: the task probably kills its workers. */
export const leaseLost = (times: number): ExecutionError => ({
  code: 'LEASE_LOST',
  kind: 'TRANSIENT',
  message: `The lease was lost ${times} times in a row.`,
});
/** The attempt ran longer than its agent allows. */
export const timedOut: ExecutionError = {
  code: 'TIMED_OUT',
  kind: 'TRANSIENT',
  message: "The attempt ran longer than the agent's timeoutSeconds.",
};
/** A step that this one needs did not complete. */
export const dependencyFailed = (steps: readonly string[]): ExecutionError => ({
  code: 'DEPENDENCY_FAILED',
  kind: 'PERMANENT',
  message: `Not completed: ${steps.join(', ')}.`,
});
/** The step's input template cannot be rendered for this run. */
export const inputTemplateFailed = (message: string): ExecutionError => ({
  code: 'INPUT_TEMPLATE_FAILED',
  kind: 'PERMANENT',
  message,
});
