import { afterEach, beforeEach, expect, test } from 'vitest';
import { type AttemptEvent, watchAttemptEvents } from '../../src/client/index.ts';
import { openWatch } from '../../src/client/open-watch.ts';
import { events } from '../../src/client/subjects.ts';
import type { AttemptEventsOf, Batch, WatchState } from '../../src/client/types.ts';
import type { Assignment } from '../../src/dispatch/types.ts';
import { toPublicId } from '../../src/domain/ids.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { count } from '../support/tier.ts';
import { quickly } from '../support/watching.ts';

let server: TestServer;
let proxy: TcpProxy;
let task: Assignment;
let after: string;
beforeEach(async () => {
  server = await startTestServer();
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
  proxy = await startTcpProxy(server.http.url);
  after = await server.plane.services.changeLog.currentCursor();
  await server.plane.launch('one');
  [task] = (await server.plane.claim(['a'])) as [Assignment];
});
afterEach(async () => {
  await proxy.stop();
  await server.stop();
});

const tell = (...contents: string[]) =>
  server.plane.tell(
    task,
    contents.map((content) => ({ type: 'thought', data: { content } })),
  );
const complete = () => server.plane.report(task, { status: 'COMPLETED' });
const runId = () => toPublicId('run', task.runId);

test('events come typed, in order and with the cursor to go on after, until the run is over', async () => {
  await tell('one', 'two');
  const seen: AttemptEvent[] = [];
  let cursor = '';
  for await (const batch of watchAttemptEvents({ url: server.url, after, of: { runId: runId() } })) {
    seen.push(...batch.events);
    ({ cursor } = batch);
    if (batch.events.length > 0 && seen.length === 2) {
      await tell('three');
      await complete();
    }
  }
  expect(seen.map(({ sequence, type, data }) => [sequence, type, data])).toEqual([
    [1, 'thought', { content: 'one' }],
    [2, 'thought', { content: 'two' }],
    [3, 'thought', { content: 'three' }],
  ]);
  expect(seen[0]).toMatchObject({
    id: expect.stringMatching(/^aev_/) as string,
    attemptId: toPublicId('att', task.attemptId),
    taskId: toPublicId('task', task.taskId),
  });
  // What was told beside a transaction that is still open, of whatever database, is told again; nothing else is.
  const ids = seen.map(({ id }) => id);
  for await (const batch of watchAttemptEvents({ url: server.url, after: cursor, of: { runId: runId() } }))
    for (const { id } of batch.events) expect(ids).toContain(id);
});

test('what is not there is over, and what is no id is thrown', async () => {
  const nobody = toPublicId('att', task.runId);
  for await (const batch of watchAttemptEvents({ url: server.url, of: { attemptId: nobody } }))
    expect(batch.events).toEqual([]);
  const wrong = watchAttemptEvents({ url: server.url, of: { runId: 'nonsense' } });
  await expect(wrong.next()).rejects.toMatchObject({ name: 'WatchError', code: 'BAD_USER_INPUT' });
});

test('over breaks and silences nothing is missed, nothing comes twice, and it says when it is stale', async () => {
  const states: WatchState[] = [];
  const batches = openWatch<AttemptEvent, AttemptEventsOf>(
    events,
    {
      url: `${proxy.url}/graphql`,
      after,
      filter: { taskId: toPublicId('task', task.taskId) },
      onState: (state) => states.push(state),
    },
    { ...quickly, silentMs: 300, answerMs: 1_000 },
  );
  const seen: AttemptEvent[] = [];
  const following = (async () => {
    for await (const { changes } of batches as AsyncIterable<Batch<AttemptEvent>>) seen.push(...changes);
  })();
  await expect.poll(() => states.at(-1)).toBe('live');
  const total = count({ test: 60, soak: 2_000 });
  for (let told = 0; told < total; told++) {
    await tell(`${told}`);
    if (told % 10 === 3) proxy.cut();
    if (told % 20 === 7) {
      proxy.set('SWALLOW_STREAMS');
      await expect.poll(() => states.at(-1), { timeout: 10_000, interval: 10 }).toBe('stale');
      proxy.set('PASS');
      await expect.poll(() => states.at(-1), { timeout: 10_000, interval: 10 }).toBe('live');
    }
  }
  await complete();
  await following;
  expect(seen.map(({ sequence }) => sequence)).toEqual(Array.from({ length: total }, (_, i) => i + 1));
  expect(states).not.toContain('polling');
});
