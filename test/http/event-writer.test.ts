import { once } from 'node:events';
import { createServer, get, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { EventWriter } from '../../src/http/event-writer.ts';

const server = createServer();
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

test('a client that reads nothing for too long is left', async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const asked = once(server, 'request') as Promise<[unknown, ServerResponse]>;
  const request = get({ port: (server.address() as AddressInfo).port });
  request.on('response', (answer) => answer.pause());
  request.on('error', () => {});
  const [, response] = await asked;
  const writer = new EventWriter(response, 0.05);
  writer.open();
  // The buffers of the network take some of it; then a message stays.
  while (!writer.closed) await writer.write('x'.repeat(1024 * 1024));
  expect(response.destroyed).toBe(true);
  // Who writes on is not held up.
  await writer.write('more');
  writer.end();
});
