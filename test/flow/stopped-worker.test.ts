import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Process, startProcess } from '../support/processes.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
let workers: Process[] = [];
beforeEach(async () => {
  server = await startTestServer({ scheduler: true });
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.end('SIGKILL')));
  workers = [];
  await server.stop();
});

const answerOf = async (worker: Process): Promise<{ outcome: string; taskStatus: string }> => {
  const reported = /^\{"reported".*\}$/m;
  await expect.poll(() => reported.test(worker.output()), { timeout: 20_000 }).toBe(true);
  return JSON.parse(reported.exec(worker.output())?.[0] ?? '') as { outcome: string; taskStatus: string };
};

test('workers that are stopped until their leases are lost are answered as the table of results says', async () => {
  const { plane } = server;
  const tasks = ['waits', 'newer', 'over'];
  for (const name of tasks) {
    await plane.agent(name, { leaseSeconds: 5 });
    await plane.job(name, [name]);
    await plane.launch(name, { config: { hold: true } });
  }
  workers = await Promise.all(
    tasks.map((name) =>
      startProcess('test/support/pull-worker.ts', [new URL(server.url).origin, name, '1'], /claimed/),
    ),
  );
  for (const worker of workers) worker.child.kill('SIGSTOP');
  const lost = `select a.id from runplane.attempts a where a.status = 'LOST'`;
  await expect.poll(() => plane.rows(lost), { timeout: 20_000 }).toHaveLength(3);

  const [newer] = await plane.claim(['newer']);
  const [other] = await plane.claim(['over']);
  await plane.report(other as never, { status: 'COMPLETED', output: 'first' });
  for (const worker of workers) {
    worker.child.kill('SIGUSR2');
    worker.child.kill('SIGCONT');
  }
  const [waits, superseding, superseded] = await Promise.all(workers.map(answerOf));
  expect(waits).toMatchObject({ outcome: 'APPLIED', taskStatus: 'COMPLETED' });
  expect(superseding).toMatchObject({ outcome: 'APPLIED', taskStatus: 'COMPLETED' });
  expect(superseded).toMatchObject({ outcome: 'SUPERSEDED', taskStatus: 'COMPLETED' });
  expect(await plane.report(newer as never, { status: 'COMPLETED' })).toMatchObject({
    outcome: 'SUPERSEDED',
  });
  expect(await plane.rows('select distinct state from runplane.tasks')).toEqual([{ state: 'COMPLETED' }]);
}, 90_000);
