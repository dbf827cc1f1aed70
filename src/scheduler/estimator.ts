import { Duty } from '../db/duty.ts';
import type { Database } from '../db/pool.ts';
import { statement } from '../db/transaction.ts';

export interface EstimatorOptions {
  db: Database;
  onError: (error: unknown, duty: string) => void;
}

const everyMs = 5000;

/** Learns what attempts use, for the token budgets that claims keep. */
export const createEstimator = ({ db, onError }: EstimatorOptions): Duty =>
  new Duty({
    name: 'estimator',
    onError,
    runOnce: async () => {
      await statement(db, { name: 'learn-estimates', text: 'select runplane.learn_estimates()' });
      return everyMs;
    },
  });
