import type { Queryable } from '../../src/db/pool.ts';

const stopped = new WeakSet<Queryable>();

/** Stops the database's clock at a time. */
export async function stopClock(db: Queryable, at: Date): Promise<void> {
  if (!stopped.has(db)) {
    await db.query({ text: 'create table if not exists public.stopped_clock (at timestamptz)' });
    await db.query({ text: 'insert into public.stopped_clock values ($1)', values: [at] });
    await db.query({
      text: 'create or replace function runplane.clock() returns timestamptz language sql stable as $$ select at from public.stopped_clock $$',
    });
    stopped.add(db);
  }
  await db.query({ text: 'update public.stopped_clock set at = $1', values: [at] });
}

/** From now on it is so much later, for everything that asks the database for the time. */
export async function setClockAhead(db: Queryable, interval: string): Promise<void> {
  await db.query({
    text: `create or replace function runplane.clock() returns timestamptz language sql stable as
      $$ select date_trunc('milliseconds', clock_timestamp()) + interval '${interval}' $$`,
  });
}

/** Seconds after the time at which the stories of tests begin. */
export const at = (seconds: number): Date => new Date(Date.UTC(2030, 0, 1) + seconds * 1000);
