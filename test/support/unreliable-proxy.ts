import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface UnreliableProxy {
  url: string;
  /** Names of the operations whose first answer was lost, or whose first stream was cut. */
  failed: Set<string>;
  stop(): Promise<void>;
}

/**
 * Stands between a client and a server, and fails each operation once: the answer to a mutation is lost after the
 * server gave it, and a stream is cut after a message.
 */
export async function startUnreliableProxy(target: string): Promise<UnreliableProxy> {
  const failed = new Set<string>();

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const [, kind, name = ''] = /(query|mutation|subscription) (\w+)/.exec(JSON.parse(body).query) ?? [];
    const fails = kind !== 'query' && !failed.has(name);
    if (fails) failed.add(name);

    const left = new AbortController();
    response.once('close', () => left.abort());
    const { accept, authorization, 'last-event-id': lastEventId } = request.headers;
    const answer = await fetch(target, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(accept && { accept }),
        ...(authorization && { authorization }),
        ...(typeof lastEventId === 'string' && { 'last-event-id': lastEventId }),
      },
      body,
      signal: left.signal,
    });
    if (kind !== 'subscription') {
      const text = await answer.text();
      if (fails) response.destroy();
      else response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
      return;
    }
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    for await (const chunk of answer.body ?? []) {
      response.write(chunk);
      if (fails && Buffer.from(chunk).includes('event: next')) break;
    }
    if (fails) response.destroy();
    else response.end();
  }

  const server = createServer((request, response) => {
    if (request.url !== '/graphql') {
      response.writeHead(404).end();
      return;
    }
    // Clients leave, and then what is forwarded for them is given up.
    forward(request, response).catch(() => response.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`,
    failed,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
