import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openWatch } from '../../src/client/open-watch.ts';
import { runs } from '../../src/client/subjects.ts';
import type { RunChangeFilter, RunStatusChange, WatchState } from '../../src/client/types.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { expectEachOnce, loggedIds, quickly } from '../support/watching.ts';

let server: TestServer;
let proxy: TcpProxy;
beforeEach(async () => {
  server = await startTestServer();
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
  proxy = await startTcpProxy(server.http.url);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await proxy.stop();
  await server.plane.rows('delete from runplane.change_log where reason is not null');
  await server.stop();
});

const many = 300;

test('one that reads too slowly for a minute goes on where it was', async () => {
  const { plane } = server;
  const runId = await plane.launch('one');
  // What is watched from now on does not begin with it.
  await plane.untilLogIsPast();
  const others = plane.services.changeLog.runChanges({}, null);
  await others.next();
  /** Changes that no buffer of a connection holds, until others have seen them. */
  const flood = async (first: number): Promise<void> => {
    await plane.rows(
      `insert into runplane.change_log (run_id, sequence, to_status, reason, at)
       select $1, n, 'RUNNING', repeat('x', 100000), runplane.clock() from generate_series($2::int, $3::int) n`,
      [runId, first, first + many - 1],
    );
    plane.services.signal.changed();
    for (let seen = 0; seen < many; ) seen += (await others.next()).value.changes.length;
  };
  const states: WatchState[] = [];
  const batches = openWatch<RunStatusChange, RunChangeFilter>(
    runs,
    { url: `${proxy.url}/graphql`, onState: (state) => states.push(state) },
    quickly,
  );
  let late = 0;
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + late);
  const changes: RunStatusChange[] = [];
  const read = async (): Promise<void> => void changes.push(...(await batches.next()).value.changes);
  await read();
  let flooded = 0;
  for (; proxy.streams() === 1; flooded += many) {
    await flood(2 + flooded);
    late += 61_000;
    await read();
  }
  while (changes.length < flooded) await read();
  await batches.return?.();
  await others.return?.();

  expect(states).toEqual(['live']);
  const [, ...logged] = await loggedIds(plane);
  expectEachOnce(changes, logged);
}, 120_000);
