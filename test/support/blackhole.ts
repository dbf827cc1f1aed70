import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A network between a program and a server that can lose all packets without closing a connection. */
export interface Blackhole {
  /** The address of the server, through it. */
  url: string;
  /** From now on nothing arrives, in either direction, on old and new connections alike. */
  swallow(): void;
  /** New connections are carried again; what was swallowed is lost, as its connections are. */
  carry(): void;
  stop(): Promise<void>;
}

export async function startBlackhole(server: string): Promise<Blackhole> {
  const to = new URL(server);
  const sockets = new Set<Socket>();
  let swallowed = new Set<Socket>();
  let swallowing = false;
  const track = (socket: Socket): void => {
    sockets.add(socket);
    if (swallowing) swallowed.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      swallowed.delete(socket);
    });
  };
  const proxy = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect({
      port: Number(to.port || 5432),
      host: to.hostname || '127.0.0.1',
      allowHalfOpen: true,
    });
    for (const [from, into] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      track(from);
      from.on('data', (chunk) => {
        if (!swallowed.has(from)) into.write(chunk);
      });
      from.on('end', () => {
        if (!swallowed.has(from)) into.end();
      });
      // A socket that was given up locally is closed here too, but the other side is not told while packets are lost.
      from.on('close', () => {
        if (!swallowed.has(into)) into.destroy();
      });
    }
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const url = new URL(server);
  url.hostname = '127.0.0.1';
  url.port = String((proxy.address() as AddressInfo).port);
  return {
    url: url.toString(),
    swallow: () => {
      swallowing = true;
      swallowed = new Set(sockets);
    },
    carry: () => {
      swallowing = false;
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await once(proxy, 'close');
    },
  };
}
