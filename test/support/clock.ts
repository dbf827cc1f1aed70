import type { Queryable } from '../../src/db/pool.ts';

/** Stops the database's clock at a time. */
export const stopClock = async (db: Queryable, at: Date): Promise<void> => {
  await db.query({
    text: `create or replace function runplane.clock() returns timestamptz language sql stable as $$ select '${at.toISOString()}'::timestamptz $$`,
  });
};

/** Seconds after the time at which the stories of tests begin. */
export const at = (seconds: number): Date => new Date(Date.UTC(2030, 0, 1) + seconds * 1000);
