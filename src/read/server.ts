import type { Database } from '../db/pool.ts';
import { readRows } from './query.ts';

/** The time by which everything is decided: the database's. */
export async function readClock(db: Database): Promise<Date> {
  const [row] = await readRows<{ now: Date }>(db, { name: 'clock', text: 'select runplane.clock() as now' });
  if (!row) throw new Error('The clock gave no time.');
  return row.now;
}
