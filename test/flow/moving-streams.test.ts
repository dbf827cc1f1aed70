import { afterEach, expect, test } from 'vitest';
import { openEventStream } from '../support/event-stream.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { count } from '../support/tier.ts';

let stays: TestServer | null = null;
afterEach(() => stays?.stop());

const watch = 'subscription { runStatusChanged { cursor caughtUp changes { id runId sequence } } }';
interface Message {
  data: { runStatusChanged: { changes: { id: string; runId: string; sequence: number }[] } };
}

/** Follows all runs until so many are seen, on the first server and then on the second. Answers the ends of streams. */
async function follow(urls: [string, string], total: number, onOpen: () => void, onRun: () => void) {
  const seen = new Set<string>();
  const ends: string[] = [];
  let lastEventId: string | null = null;
  for (const url of urls) {
    const stream = await openEventStream(
      url,
      watch,
      lastEventId === null ? {} : { 'last-event-id': lastEventId },
    );
    for (;;) {
      // A stream that is cut is over like one that ends.
      const message = await stream.next().catch(() => null);
      if (message?.event !== 'next') {
        ends.push(message?.event ?? 'unfinished');
        break;
      }
      if (lastEventId === null) onOpen();
      lastEventId = message.id;
      const { changes } = (JSON.parse(message.data) as Message).data.runStatusChanged;
      for (const { runId } of changes) {
        if (!seen.has(runId)) onRun();
        seen.add(runId);
      }
      if (seen.size === total) break;
    }
    stream.leave();
    if (seen.size === total) break;
  }
  return { seen: seen.size, ends };
}

test('a replica that is stopped ends its streams unfinished, and their clients go on at another and miss nothing', async () => {
  const server = (stays = await startTestServer());
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
  const leaves = await startTestServer({ database: server.plane.database });
  const patience = count({ test: 20_000, soak: 300_000 });
  const clients = count({ test: 20, soak: 200 });
  const total = count({ test: 120, soak: 2_000 });

  let open = 0;
  let told = 0;
  const following = Array.from({ length: clients }, () =>
    follow(
      [leaves.url, server.url],
      total,
      () => open++,
      () => told++,
    ),
  );
  await expect.poll(() => open, { timeout: patience }).toBe(clients);
  const writing = (async () => {
    for (let i = 1; i < total; i++) await server.plane.launch('one');
  })();
  await expect.poll(() => told, { timeout: patience, interval: 5 }).toBeGreaterThan((clients * total) / 4);
  // As the process does it: work first, then the answers.
  await leaves.plane.services.drain();
  await leaves.http.stop();
  await leaves.plane.services.stop();
  await writing;
  // One that nobody can have been told before it moved.
  await server.plane.launch('one');
  expect(await Promise.all(following)).toEqual(
    Array.from({ length: clients }, () => ({ seen: total, ends: ['unfinished'] })),
  );
});
