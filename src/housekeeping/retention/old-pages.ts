/**
 * What is old is found by walking ids: they are UUIDs that begin with the time they were made at, so that what is old
 * is at the start, and no index by time has to be kept. Clocks of processes made them; the day's margin is for those
 * that are wrong, and the stored time decides.
 */
export const oldBound = (days: string): string => `
(lpad(to_hex((extract(epoch from runplane.clock() - make_interval(days => ${days}) + interval '1 day') * 1000)::bigint), 12, '0') || repeat('f', 20))::uuid`;

/** Rows that a committed batch deletes, at most. */
export const batchRows = 5000;

/** Idempotency keys are kept with what they made, and both at least so long. */
export const keptWithKey = "interval '7 days'";

export interface OldPage {
  ids: string[];
  /** Where the next page begins; null: this was the last one. */
  after: string | null;
}
