import pg from 'pg';
import { beforeEach, describe, expect, it } from 'vitest';
import { ControlPlane } from '../support/control-plane.ts';

let plane: ControlPlane;
/** A transaction that takes locks in their order, as everybody does. */
let other: pg.Client;
beforeEach(async () => {
  plane = await ControlPlane.start();
  for (const name of ['plain', 'keyed']) {
    await plane.agent(name);
    await plane.job(name, [name]);
  }
  other = new pg.Client({ connectionString: plane.database.url });
  await other.connect();
  return async () => {
    await other.end();
    await plane.stop();
  };
});

const keyed = { job: 'keyed', serialKey: 'k' };

/** Locks the serial key of the task that is there. */
async function holdKey(): Promise<void> {
  await other.query('begin isolation level read committed');
  await other.query(
    `select runplane.lock_serial_keys(array(select id from runplane.tasks where serial_key = 'k'))`,
  );
}
/** Turns come after serial keys: who waits for a key holds no turn. */
async function takeTurnsAndEnd(): Promise<void> {
  const { rowCount } = await other.query(`select from runplane.customer_turns for update nowait`);
  expect(rowCount).toBeGreaterThan(0);
  await other.query('commit');
}

describe('whoever waits for a serial key holds no turn of a customer', () => {
  beforeEach(async () => {
    await plane.launch('plain', { customer: 'c' });
    await plane.launch(keyed.job, keyed);
  });

  it('in a launch', async () => {
    await holdKey();
    const launched = plane.services.intake.launchRuns([{ job: 'plain', customer: 'c' }, keyed]);
    await plane.untilBlocked(1);
    await takeTurnsAndEnd();
    expect(await launched).toMatchObject([{ kind: 'LaunchRunSuccess' }, { kind: 'LaunchRunSuccess' }]);
    expect(await plane.rows('select from runplane.ready_tasks')).toHaveLength(3);
  });

  it('in results, of which one is retried at once and another makes room for the next of its key', async () => {
    const second = await plane.launch(keyed.job, keyed);
    const [failing, completing] = await plane.claim(['plain', 'keyed']);
    if (!failing || !completing) throw new Error('nothing was claimed');
    await holdKey();
    const reported = plane.services.results.reportResults(
      [failing, completing].map((assignment) => ({
        ...plane.credentials(assignment),
        ...(assignment.agent === 'keyed'
          ? // One by which something is made is decided with the other, in one transaction.
            { status: 'COMPLETED' as const, materializations: [{ assetKey: 'made' }] }
          : { status: 'FAILED' as const, error: { code: 'AGAIN', kind: 'TRANSIENT' as const, message: '' } }),
      })),
    );
    await plane.untilBlocked(1);
    await takeTurnsAndEnd();
    expect(await reported).toMatchObject([{ outcome: 'APPLIED' }, { outcome: 'APPLIED' }]);
    expect((await plane.claim(['keyed'])).map(({ runId }) => runId)).toEqual([second]);
    expect(await plane.claim(['plain'])).toHaveLength(1);
  });
});
