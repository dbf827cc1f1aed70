import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/*
 * What takes spans in by OTLP over HTTP as protobuf, in a process of its own, and counts them. Run as a program it says
 * where it is, and how many there are each time that some came.
 */

export interface SpanReceiver {
  endpoint: string;
  received(): number;
  /** Settles when there are so many. */
  until(spans: number): Promise<void>;
  stop(): void;
}

export async function spawnSpanReceiver(): Promise<SpanReceiver> {
  const program = fileURLToPath(import.meta.url);
  const child: ChildProcess = spawn(process.execPath, [...process.execArgv, program, 'receive'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (!child.stdout) throw new Error('the receiver has no pipe');
  const lines = createInterface({ input: child.stdout });
  const [endpoint] = (await once(lines, 'line')) as [string];
  let spans = 0;
  lines.on('line', (line) => {
    spans = Number(line);
  });
  return {
    endpoint,
    received: () => spans,
    until: async (wanted) => {
      while (spans < wanted) await sleep(5);
    },
    stop: () => void child.kill(),
  };
}

async function receive(): Promise<void> {
  let spans = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      spans += countSpans(Buffer.concat(chunks));
      response.writeHead(200, { 'content-type': 'application/x-protobuf' });
      response.end();
      console.log(spans);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

/** The numbers of the fields resource_spans, scope_spans and spans. */
const pathOfSpans = [1, 2, 2];

/** Goes no deeper than it has to, which costs next to nothing. */
function countSpans(message: Buffer, depth = 0): number {
  if (depth === pathOfSpans.length) return 1;
  let at = 0;
  let count = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = message[at++] ?? 0;
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    if ((tag & 7) !== 2) throw new Error(`no field of an export has the wire type ${tag & 7}`);
    const length = varint();
    if (tag >> 3 === pathOfSpans[depth]) count += countSpans(message.subarray(at, at + length), depth + 1);
    at += length;
  }
  return count;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await receive();
