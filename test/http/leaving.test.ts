import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { toPublicId } from '../../src/domain/ids.ts';
import { openEventStream } from '../support/event-stream.ts';
import { bearer, type GuardedServer, startGuardedServer } from '../support/guarded-server.ts';
import { ask, StreamByHand } from '../support/stream-by-hand.ts';
import { count, tier } from '../support/tier.ts';

let server: GuardedServer;
let headers: Record<string, string>;
beforeEach(async () => {
  server = await startGuardedServer({}, { access: { reservationSeconds: 1 } });
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
  const { secret } = await server.token({ scopes: ['READ', 'WORK'] });
  headers = bearer(secret);
});
afterEach(() => server.stop());

const kept = () => ({ ...server.http.kept(), ...server.plane.services.kept() });

/** Opens a stream, and leaves when its first message is there. */
async function leaveStream(query: string): Promise<void> {
  const stream = await openEventStream(server.url, query, headers);
  expect((await stream.next())?.data).toContain('"data"');
  stream.leave();
}

/** Asks, and leaves when the server waits for an answer. */
async function leaveQuestion(query: string, accept: string): Promise<void> {
  const left = new AbortController();
  const answer = fetch(server.url, {
    method: 'POST',
    headers: { ...headers, accept, 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
    signal: left.signal,
  }).catch((error: unknown) => {
    if (!left.signal.aborted) throw error;
  });
  // At another point of its way through the server each time.
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
  left.abort();
  await answer;
}

const watchTasks = 'subscription { taskStatusChanged { cursor changes { toStatus } } }';
const watchEvents = (runId: string) => `subscription { attemptEvents(of: { runId: "${runId}" }) { cursor } }`;

/** A single connection with two subscriptions, left when they have told something. */
async function leaveConnection(): Promise<void> {
  const byHand = new StreamByHand(`${server.url}/stream`);
  const { token } = await byHand.reserve(headers);
  const connection = await byHand.connect(token, headers);
  await byHand.send(token, ask('1', watchTasks), headers);
  await connection.readUntil('taskStatusChanged');
  // Its operation is under way while the connection goes.
  const late = byHand.send(token, ask('2', watchTasks), headers);
  connection.leave();
  await late;
}

/** A reservation with an operation that nobody comes for. */
async function leaveReservation(): Promise<void> {
  const byHand = new StreamByHand(`${server.url}/stream`);
  const { token } = await byHand.reserve(headers);
  await byHand.send(token, ask('1', watchTasks), headers);
}

const claim =
  'mutation { claimTasks(input: { workerId: "w", agents: ["nobody"], waitSeconds: 25 }) { __typename } }';

test('clients that leave, however they were connected, leave nothing behind', async () => {
  await server.plane.agent('nobody');
  const runId = toPublicId('run', await server.plane.launch('one'));
  const kinds: (() => Promise<unknown>)[] = [
    () => leaveStream(watchTasks),
    () => leaveStream(`subscription { runStatusChanged(filter: { ids: ["${runId}"] }) { cursor } }`),
    () => leaveStream(watchEvents(runId)),
    () => leaveStream('subscription { workAvailable(agents: ["nobody"]) { agents } }'),
    () => leaveQuestion(watchTasks, 'text/event-stream'),
    () => leaveQuestion(watchEvents(runId), 'text/event-stream'),
    () =>
      leaveQuestion(
        '{ taskStatusChanges(filter: { ids: [] }, waitSeconds: 25) { cursor } }',
        'application/json',
      ),
    () => leaveQuestion(claim, 'application/json'),
    leaveConnection,
    leaveReservation,
  ];
  let next = 0;
  const leaveUntil = async (end: number): Promise<void> => {
    while (next < end) {
      const cycle = next++;
      await kinds[cycle % kinds.length]?.();
      // Others are told something now and then while they come and go.
      if (cycle % 50 === 0) await server.plane.launch('one');
    }
  };
  const leaveTogether = (end: number) => Promise.all(Array.from({ length: 10 }, () => leaveUntil(end)));

  const before = kept();
  expect(before).toMatchObject({ subscribers: 0, longPolls: 0, workStreams: 0, openStreams: 0 });
  const cycles = count({ test: 200, soak: 10_000 });
  await leaveTogether(cycles / 2);
  await expect.poll(kept, { timeout: 10_000 }).toEqual(before);
  const heap = heapUsed();
  await leaveTogether(cycles);
  await expect.poll(kept, { timeout: 10_000 }).toEqual(before);
  if (tier === 'soak') expect(heapUsed() - heap).toBeLessThan(8 * 2 ** 20);
});

test('a client that leaves while its stream waits is forgotten without another message', async () => {
  const before = kept();
  const stream = await openEventStream(server.url, watchTasks, headers);
  await stream.next();
  await expect.poll(kept).toMatchObject({ subscribers: 1, openStreams: 1, placesOfTokens: 1 });
  stream.leave();
  await expect.poll(kept, { timeout: 1_000 }).toEqual(before);
});

/** Of what is still in use. */
function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}
