import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.ts';

export interface NatsServer {
  url: string;
  port: number;
  /** The directory of its streams. */
  store: string;
  /** Starts it again, on the same store and port. */
  start(): Promise<void>;
  /** SIGKILL is what a crash leaves. */
  end(signal: NodeJS.Signals): Promise<void>;
  remove(): Promise<void>;
}

export interface NatsServerOptions {
  /** Default: RUNPLANE_TEST_NATS_SERVER, else the one of Debian. */
  program?: string;
  /** Lines of its configuration file. */
  config?: string;
}

/** A nats-server of its own, with JetStream, on a free port and with a store directory of its own. */
export async function startNatsServer({
  program = process.env.RUNPLANE_TEST_NATS_SERVER ?? 'nats-server',
  config = '',
}: NatsServerOptions = {}): Promise<NatsServer> {
  const directory = mkdtempSync(join(tmpdir(), 'runplane-nats-'));
  const port = await freePort();
  const store = join(directory, 'store');
  const file = join(directory, 'nats.conf');
  writeFileSync(file, `listen: 127.0.0.1:${port}\njetstream { store_dir: "${store}" }\n${config}\n`);
  let server: ChildProcess | null = null;
  const start = async (): Promise<void> => {
    let output = '';
    const child = spawn(program, ['-c', file], { stdio: ['ignore', 'ignore', 'pipe'] });
    server = child;
    child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    while (!(await answers(port))) {
      if (child.exitCode !== null) throw new Error(`nats-server ended with ${child.exitCode}: ${output}`);
      await delay(20);
    }
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const child = server;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };
  await start();
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    store,
    start,
    end,
    remove: async () => {
      await end('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** It greets whoever comes, once it is ready. */
async function answers(port: number): Promise<boolean> {
  const socket = connectTcp(port, '127.0.0.1');
  try {
    const [greeting] = (await Promise.race([
      once(socket, 'data'),
      once(socket, 'close').then(() => ['']),
    ])) as [Buffer | string];
    return greeting.toString().startsWith('INFO');
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
