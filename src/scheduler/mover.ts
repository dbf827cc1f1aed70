import { Duty } from '../db/duty.ts';
import type { Database } from '../db/pool.ts';
import { statement } from '../db/transaction.ts';

export interface MoverOptions {
  db: Database;
  onMoved: () => void;
  onError: (error: unknown, duty: string) => void;
}

const batch = 500;
/** Also without any due task: a task may have been delayed by a replica that could not be heard. */
const maxSleepMs = 10_000;
const minSleepMs = 20;

const moveSql = `
select runplane.move_due_tasks($1) as moved,
       (select extract(epoch from min(d.available_at) - runplane.clock()) * 1000 from runplane.delayed_tasks d)::float8 as "waitMs"`;

/** Makes delayed tasks ready when their time has come; sleeps until the earliest one's. */
export const createMover = ({ db, onMoved, onError }: MoverOptions): Duty =>
  new Duty({
    name: 'mover',
    minGapMs: minSleepMs,
    onError,
    runOnce: async () => {
      const { rows } = await statement<{ moved: number; waitMs: number | null }>(db, {
        name: 'move-due-tasks',
        text: moveSql,
        values: [batch],
      });
      const { moved = 0, waitMs = null } = rows[0] ?? {};
      if (moved > 0) {
        onMoved();
        // The earliest time was read before the move.
        return 0;
      }
      return Math.min(maxSleepMs, Math.max(0, waitMs ?? maxSleepMs));
    },
  });
