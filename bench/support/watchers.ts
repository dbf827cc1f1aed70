import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/*
 * A process of its own that watches one subscription over many connections, so that reading does not share the event
 * loop with what writes. Run as a program it says when all streams are open, and each time that all of them were told.
 */

export interface Watchers {
  /** Settles when the next round is told, of which the options say how much it is. */
  told(): Promise<void>;
  stop(): void;
}

export interface WatchOptions {
  url: string;
  query: string;
  /** {n} in them is the number of the stream. */
  variables?: object;
  streams: number;
  /** Something is told where this stands in a stream: greetings and keep-alives have it not. */
  marker: string;
  /** So many make a round; default: one for each stream. */
  round?: number;
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
async function watch({
  url,
  query,
  variables = {},
  streams,
  marker,
  round = streams,
}: WatchOptions): Promise<void> {
  const { hostname, port } = new URL(url);
  const wanted = Buffer.from(marker);
  let told = 0;
  const open = (n: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const ofStream = JSON.stringify(variables).replaceAll('{n}', String(n));
      const request = requestText(new URL(url), `{"query":${JSON.stringify(query)},"variables":${ofStream}}`);
      const socket = connect(Number(port), hostname, () => socket.write(request));
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
          if (told % round === 0) say('told');
        }
        // What may be the first part of one that goes on; the last byte of a frame is none.
        rest = text.at(-1) === lineFeed ? Buffer.alloc(0) : text.subarray(1 - wanted.length);
      });
    });
  for (let n = 0; n < streams; n += 50)
    await Promise.all(Array.from({ length: Math.min(streams - n, 50) }, (_, i) => open(n + i)));
  say('open');
}

const lineFeed = 0x0a;

function requestText({ host, pathname }: URL, body: string): string {
  const head = [
    `POST ${pathname} HTTP/1.1`,
    `host: ${host}`,
    'content-type: application/json',
    'accept: text/event-stream',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await watch(JSON.parse(process.argv[2] ?? '') as WatchOptions);
