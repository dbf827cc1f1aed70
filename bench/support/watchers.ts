import { type ChildProcess, spawn } from 'node:child_process';
import http from 'node:http';
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

async function watch({ url, query, streams, marker }: WatchOptions): Promise<void> {
  let told = 0;
  const agent = new http.Agent({ maxSockets: Number.POSITIVE_INFINITY });
  const open = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };
      const request = http.request(url, { method: 'POST', agent, headers }, (response) => {
        if (response.statusCode !== 200) {
          reject(new Error(`a stream was answered ${response.statusCode}`));
          return;
        }
        response.setEncoding('utf8');
        resolve();
        let rest = '';
        response.on('data', (text: string) => {
          const frames = (rest + text).split('\n\n');
          rest = frames.pop() ?? '';
          for (const frame of frames) {
            if (!frame.includes(marker)) continue;
            told++;
            if (told % streams === 0) say('told');
          }
        });
      });
      request.on('error', reject);
      request.end(JSON.stringify({ query }));
    });
  for (let left = streams; left > 0; left -= 50)
    await Promise.all(Array.from({ length: Math.min(left, 50) }, open));
  say('open');
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await watch(JSON.parse(process.argv[2] ?? '') as WatchOptions);
