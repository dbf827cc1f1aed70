import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { createGunzip } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { toPublicId } from '../../src/domain/ids.ts';
import { type Nginx, startNginx } from '../support/nginx.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
let nginx: Nginx;
const sessions = new Set<ClientHttp2Session>();
beforeEach(async () => {
  server = await startTestServer();
  await server.plane.agent('a');
  await server.plane.job('one', ['a']);
  nginx = await startNginx([server.http.url]);
});
afterEach(async () => {
  for (const session of sessions) session.destroy();
  sessions.clear();
  await nginx.stop();
  await server.stop();
});

const launch = async (): Promise<string> => toPublicId('run', await server.plane.launch('one'));

/** One HTTP/2 connection to nginx. */
function browser(): ClientHttp2Session {
  const session = connect(nginx.url);
  sessions.add(session);
  return session;
}

const watch = JSON.stringify({
  query: 'subscription { runStatusChanged { cursor changes { runId toStatus } } }',
});

/** A stream on a connection; nextUntil reads until the text was said, and answers the last cursor. */
async function subscribe(session: ClientHttp2Session, lastEventId?: string) {
  const stream = session.request({
    ':method': 'POST',
    ':path': '/graphql',
    'content-type': 'application/json',
    accept: 'text/event-stream',
    // What is compressed is held back until there is much of it, unless the answer says otherwise.
    'accept-encoding': 'gzip',
    ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
  });
  stream.end(watch);
  const [headers] = (await once(stream, 'response')) as [Record<string, string | number>];
  const text = headers['content-encoding'] === 'gzip' ? stream.pipe(createGunzip()) : stream;
  const chunks = text.setEncoding('utf8')[Symbol.asyncIterator]() as AsyncIterator<string>;
  let cursor = '';
  const nextUntil = async (wanted: string): Promise<string> => {
    for (let text = ''; !text.includes(wanted) || !text.endsWith('\n\n'); ) {
      const { done, value } = await chunks.next();
      if (done) throw new Error(`the stream ended: ${text}`);
      text += value;
      cursor = [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? cursor;
    }
    return cursor;
  };
  return { headers, nextUntil, leave: () => stream.close() };
}

test('a stream through nginx and HTTP/2 tells each change at once, and resumes on another connection', async () => {
  const session = browser();
  const stream = await subscribe(session);
  expect(stream.headers).toMatchObject({
    ':status': 200,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
  });
  await stream.nextUntil('event: next');
  let cursor = '';
  // Were it kept back until there is more, the first of them would not come.
  for (let i = 0; i < 3; i++) cursor = await stream.nextUntil(await launch());
  session.destroy();

  const missed = await launch();
  const resumed = await subscribe(browser(), cursor);
  await resumed.nextUntil(missed);
  await resumed.nextUntil(await launch());
  resumed.leave();
});

test('many streams share one connection through nginx, and what leaves is forgotten behind it', async () => {
  const session = browser();
  const streams = await Promise.all(Array.from({ length: 20 }, () => subscribe(session)));
  await Promise.all(streams.map((stream) => stream.nextUntil('event: next')));
  const runId = await launch();
  await Promise.all(streams.map((stream) => stream.nextUntil(runId)));
  expect(server.http.kept()).toMatchObject({ openStreams: 20 });
  for (const stream of streams) stream.leave();
  await expect.poll(() => server.http.kept()).toMatchObject({ openStreams: 0 });
  expect(server.plane.services.kept()).toMatchObject({ subscribers: 0 });
});
