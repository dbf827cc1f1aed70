import type { Unavailable } from '../domain/problems.ts';
import { BudgetSpent, type TimeBudget, withinBudget } from '../domain/time-bound.ts';

/** Plans in the time that is left for all that is admitted together, or asks to be repeated. */
export function inTime<Plan>(budget: TimeBudget, plan: () => Plan): Plan | Unavailable {
  try {
    return withinBudget(budget, plan);
  } catch (error) {
    if (!(error instanceof BudgetSpent)) throw error;
    return {
      kind: 'Unavailable',
      message: `Checking the config by the job's schema and templates: ${error.message}. Nothing was stored; send it again, by itself.`,
      retryAfterSeconds: 1,
    };
  }
}
