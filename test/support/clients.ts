import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProcess } from './processes.ts';

export const adminToken = 'the-token-of-the-administrator';
const ready = /runplane ready on (http:\S+)/;

/** A server process as it is run for others, on a database of its own. */
export async function startServerWithTokens(): Promise<{ url: string; stop(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'runplane-clients-'));
  const server = await startProcess('src/main.ts', [], ready, {
    RUNPLANE_AUTH: 'token',
    RUNPLANE_ADMIN_TOKEN: adminToken,
    RUNPLANE_DATA_DIR: join(directory, 'data'),
    RUNPLANE_PORT: '0',
    LOG_LEVEL: 'warn',
  });
  return {
    url: `${ready.exec(server.output())?.[1]}/graphql`,
    stop: async () => {
      await server.end('SIGTERM');
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Runs a command and answers its standard output; all that it printed is the error when it fails. */
export async function run(
  command: string,
  args: string[],
  options: { cwd?: URL; env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}: ${printed}`);
  return output;
}
