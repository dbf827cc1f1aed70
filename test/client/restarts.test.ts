import { afterEach, beforeEach, expect, test } from 'vitest';
import { toPublicId } from '../../src/domain/ids.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { freePort } from '../support/free-port.ts';
import { type Process, startProcess } from '../support/processes.ts';
import { expectEachOnce, loggedIds, startWatching } from '../support/watching.ts';

let plane: ControlPlane;
let port: number;
let server: Process;
const start = async (): Promise<void> => {
  server = await startProcess('src/main.ts', [], /runplane ready/, {
    DATABASE_URL: plane.database.url,
    RUNPLANE_PORT: String(port),
    LOG_LEVEL: 'error',
  });
};
beforeEach(async () => {
  plane = await ControlPlane.start();
  await plane.agent('a');
  await plane.job('one', ['a']);
  port = await freePort();
  await start();
});
afterEach(async () => {
  await server.end('SIGKILL');
  await plane.stop();
});

const launch = async () => toPublicId('run', await plane.launch('one'));

test('a server that is killed, or stops in good order, and comes again at its port costs nothing and repeats nothing', async () => {
  const url = `http://127.0.0.1:${port}/graphql`;
  const after = await plane.services.changeLog.currentCursor();
  const all = startWatching({ url, after });
  const runId = await launch();
  const run = startWatching({ url, after, filter: { ids: [runId] } });
  await Promise.all([all.until(runId), run.until(runId)]);
  const launched = [runId];
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    await server.end(signal);
    launched.push(await launch());
    await all.untilState('stale');
    await start();
    launched.push(await launch());
    await all.untilState('live');
    await all.until(launched.at(-1) ?? '');
  }
  // The run went on all the while, and its end is the end of its own watch.
  for (const task of await plane.claim(['a'])) await plane.report(task, { status: 'COMPLETED' });
  await Promise.all(launched.map((id) => all.until(id, 'COMPLETED')));
  expect(await run.over).toBeNull();
  expect(run.changes.map(({ toStatus }) => toStatus)).toEqual(['QUEUED', 'RUNNING', 'COMPLETED']);
  await all.stop();
  const logged = await loggedIds(plane);
  // Each was launched, claimed and completed.
  expect(logged).toHaveLength(launched.length * 3);
  expectEachOnce(all.changes, logged);
}, 120_000);
