import { afterEach, beforeEach, expect, test } from 'vitest';
import { Database, type Queryable } from '../../src/db/pool.ts';
import { createIntake } from '../../src/intake/intake.ts';
import type { LaunchRunInput } from '../../src/intake/types.ts';
import { connectionTo } from '../support/connection.ts';
import { ControlPlane } from '../support/control-plane.ts';

/** Knows how many transactions of several statements were begun. */
class CountingDatabase extends Database {
  begun = 0;

  override inTransaction<T>(begin: string, work: (tx: Queryable) => Promise<T>): Promise<T> {
    this.begun++;
    return super.inTransaction(begin, work);
  }
}

let plane: ControlPlane;
let db: CountingDatabase;
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  db = new CountingDatabase({
    ...connectionTo(plane.database.url, null),
    applicationName: 'runplane-test',
    onError: () => {},
  });
});
afterEach(async () => {
  await db.close();
  await plane.stop();
});

test.each<[string, Partial<LaunchRunInput>, number]>([
  ['without a key is one statement', {}, 0],
  ['for later is one statement', { availableAt: new Date('2100-01-01') }, 0],
  ['with an idempotency key is one transaction', { idempotencyKey: 'k' }, 1],
  ['with a serial key is one transaction', { serialKey: 's' }, 1],
])('a launch %s', async (_, input, begun) => {
  const intake = createIntake({
    db,
    installation: plane.database.installation,
    onCommit: () => {},
    observer: null,
  });
  expect(await intake.launchRuns([{ job: 'one', ...input }])).toMatchObject([{ kind: 'LaunchRunSuccess' }]);
  expect(db.begun).toBe(begun);
});
