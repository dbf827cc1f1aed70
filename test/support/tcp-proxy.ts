import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Bytes of connections in this mode go nowhere, though they stay open. */
type Mode = 'PASS' | 'SWALLOW_STREAMS' | 'SWALLOW_ALL';

export interface TcpProxy {
  url: string;
  /** For connections that are open and those to come. */
  set(mode: Mode): void;
  /** How many streams were asked for so far. */
  streams(): number;
  /** Cuts all connections. */
  cut(): void;
  stop(): Promise<void>;
}

/**
 * A network in front of a server that can be told to fail. A connection ends before it passes on what says cutsAt, or an
 * answer that says losesAnswer.
 */
export async function startTcpProxy(
  target: string,
  { cutsAt = null, losesAnswer = null }: { cutsAt?: string | null; losesAnswer?: string | null } = {},
): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  let mode: Mode = 'PASS';
  let streams = 0;
  const open = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = connect(Number(port), hostname);
    let isStream = false;
    /** A connection that swallowed something never passes anything again: bytes would be missing. */
    let isLost = false;
    const passes = (): boolean => {
      isLost ||= mode === 'SWALLOW_ALL' || (mode === 'SWALLOW_STREAMS' && isStream);
      return !isLost;
    };
    client.on('data', (bytes: Buffer) => {
      if (bytes.includes('accept: text/event-stream')) {
        isStream = true;
        streams++;
      }
      if (cutsAt !== null && bytes.includes(cutsAt)) client.destroy();
      else if (passes()) server.write(bytes);
    });
    server.on('data', (bytes: Buffer) => {
      if (losesAnswer !== null && bytes.includes(losesAnswer)) return void client.destroy();
      if (!passes() || client.write(bytes)) return;
      // A client that does not read is felt by the server.
      server.pause();
      client.once('drain', () => server.resume());
    });
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        open.delete(socket);
        other.destroy();
      });
    }
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const cut = (): void => {
    for (const socket of open) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    set: (wanted) => {
      mode = wanted;
    },
    streams: () => streams,
    cut,
    stop: async () => {
      const closed = once(proxy, 'close');
      proxy.close();
      cut();
      await closed;
    },
  };
}
