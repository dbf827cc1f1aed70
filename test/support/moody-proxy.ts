import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What becomes of a request; lost: it is executed, and its answer does not arrive. */
export type Mood =
  | 'pass'
  | 'lost'
  | 'reset'
  | 'unavailable'
  | { status: number; headers?: Record<string, string>; body: string };

/** Stands between a client and a server like a network and its gateways; each request meets the next mood, and then passes. */
export async function startMoodyProxy(
  target: string,
  moods: Mood[],
): Promise<{ url: string; requests(): number; stop(): Promise<void> }> {
  let requests = 0;

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const mood = moods[requests++] ?? 'pass';
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (mood === 'reset') return void response.destroy();
    if (typeof mood === 'object') return void response.writeHead(mood.status, mood.headers).end(mood.body);
    const body = Buffer.concat(chunks);
    const { authorization } = request.headers;
    const answer = await fetch(target, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
      body,
    });
    const text = await answer.text();
    if (mood === 'lost') return void response.destroy();
    response.writeHead(answer.status, { 'content-type': 'application/json' });
    response.end(mood === 'unavailable' ? everySecondUnavailable(text) : text);
  }

  const server = createServer((request, response) => {
    forward(request, response).catch(() => response.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => requests,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** As a server answers whose database went away in the middle: what it did is not known to it. */
function everySecondUnavailable(text: string): string {
  const answer = JSON.parse(text);
  answer.data.publishEvents = answer.data.publishEvents.map((outcome: object, i: number) =>
    i % 2 === 0
      ? outcome
      : { __typename: 'Unavailable', message: 'The database went away.', retryAfterSeconds: 0.1 },
  );
  return JSON.stringify(answer);
}
