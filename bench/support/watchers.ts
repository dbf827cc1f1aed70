import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/*
 * A process of its own that watches one subscription over many connections, so that reading does not share the event
 * loop with what writes. Run as a program it says when all streams are open, and each time that all of them were told.
 */

export interface Watchers {
  /** Settles when every stream was told of the next event. */
  told(): Promise<void>;
  stop(): void;
}

/** An event of a stream is told when this stands in it: greetings and keep-alives are none. */
export interface WatchOptions {
  url: string;
  query: string;
  streams: number;
  marker: string;
}

export async function startWatchers(options: WatchOptions): Promise<Watchers> {
  const program = fileURLToPath(import.meta.url);
  const child: ChildProcess = spawn(
    process.execPath,
    [...process.execArgv, program, JSON.stringify(options)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  if (!child.stdout) throw new Error('the watchers have no pipe');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<void> => {
    const { done } = await lines.next();
    if (done) throw new Error('the watchers ended');
  };
  await next();
  return { told: next, stop: () => void child.kill() };
}

const say = (word: string): void => void process.stdout.write(`${word}\n`);

/** Over plain sockets, and counting bytes: what reads costs a core less than what it measures. */
async function watch({ url, query, streams, marker }: WatchOptions): Promise<void> {
  const { hostname, port, pathname } = new URL(url);
  const body = JSON.stringify({ query });
  const head = [
    `POST ${pathname} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    'content-type: application/json',
    'accept: text/event-stream',
    `content-length: ${Buffer.byteLength(body)}`,
  ].join('\r\n');
  const wanted = Buffer.from(marker);
  let told = 0;
  const open = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => socket.write(`${head}\r\n\r\n${body}`));
      socket.on('error', reject);
      let rest: Buffer = Buffer.alloc(0);
      socket.once('data', (first) => {
        if (first.toString('latin1').startsWith('HTTP/1.1 200 ')) resolve();
        else reject(new Error(`a stream was answered ${first.toString('latin1')}`));
      });
      socket.on('data', (bytes) => {
        const text = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
        for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
          told++;
          if (told % streams === 0) say('told');
        }
        // What may be the first part of one that goes on; the last byte of a frame is none.
        rest = text.at(-1) === lineFeed ? Buffer.alloc(0) : text.subarray(1 - wanted.length);
      });
    });
  for (let left = streams; left > 0; left -= 50)
    await Promise.all(Array.from({ length: Math.min(left, 50) }, open));
  say('open');
}

const lineFeed = 0x0a;

if (process.argv[1] === fileURLToPath(import.meta.url))
  await watch(JSON.parse(process.argv[2] ?? '') as WatchOptions);
