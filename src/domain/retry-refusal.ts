import type { StepCondition } from './job-definition.ts';
import type { RunStatus } from './status.ts';

/** What decides whether a failed or cancelled task can be tried again. */
export interface RetryFacts {
  runStatus: RunStatus;
  errorCode: string | null;
  when: StepCondition;
  /** A step that it depends on is not over, so that what it would start from is still open. */
  waits: boolean;
  /** A step that it depends on and that did not complete. */
  brokenStep: string | null;
}

/** Why a failed or cancelled task cannot be tried again now; null: it can. */
export function whyNotRetried({ runStatus, errorCode, when, waits, brokenStep }: RetryFacts): string | null {
  if (runStatus === 'CANCELLING') return 'Its run is being cancelled; retry when that is over.';
  if (waits) return null;
  if (errorCode === 'INPUT_TEMPLATE_FAILED')
    return 'Its input cannot be rendered for this run; launch the job anew.';
  return brokenStep !== null && when === 'DEPENDENCIES_COMPLETED'
    ? `It depends on the step ${brokenStep}, which did not complete; retry that one.`
    : null;
}
