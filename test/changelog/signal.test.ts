import pg from 'pg';
import { expect, test } from 'vitest';
import { ControlPlane } from '../support/control-plane.ts';

test('others are told of many commits by few notifications, which come from none of the transactions that write', async () => {
  const plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  const listener = new pg.Client({ connectionString: plane.database.url, application_name: 'test-listener' });
  await listener.connect();
  const senders: number[] = [];
  listener.on('notification', ({ processId }) => senders.push(processId));
  await listener.query('listen runplane_changed');

  const start = performance.now();
  const commits = 200;
  for (let commit = 0; commit < commits; commit++) await plane.launch('one');
  // Also when it is the last one for a while.
  const told = senders.length;
  await plane.launch('one');
  await expect.poll(() => senders.length).toBeGreaterThan(told);
  // Each 20 ms, of timers that are a little early.
  const most = Math.ceil((performance.now() - start) / 18) + 1;
  expect(senders.length).toBeLessThanOrEqual(most);
  const writers = await plane.rows<{ pid: number }>(
    `select pid from pg_stat_activity where datname = current_database() and application_name like 'runplane%'`,
  );
  expect(new Set(senders).size).toBe(1);
  expect(writers.map(({ pid }) => pid)).not.toContain(senders[0]);
  await listener.end();
  await plane.stop();
});
