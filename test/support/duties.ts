import { expect } from 'vitest';
import type { Duty } from '../../src/db/duty.ts';
import type { Database } from '../../src/db/pool.ts';

/** Runs a round of a shared duty now, to its end. */
export async function runRound(db: Database, name: string, duty: Duty): Promise<void> {
  await db.query({
    text: `update runplane.duties set due_at = runplane.clock() where name = $1 and holder is null`,
    values: [name],
  });
  duty.start();
  await expect
    .poll(
      async () => {
        const { rows } = await db.query({
          text: 'select from runplane.duties where name = $1 and holder is null and due_at > runplane.clock()',
          values: [name],
        });
        return rows.length;
      },
      { timeout: 20_000 },
    )
    .toBe(1);
  await duty.stop();
}
