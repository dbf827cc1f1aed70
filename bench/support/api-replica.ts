import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { silent } from './product.ts';

/* A server in a process of its own, which answers clients and executes nothing. Run as a program it says where it is. */

export interface ApiReplica {
  url: string;
  stop(): Promise<void>;
}

export async function spawnApiReplica(database: string): Promise<ApiReplica> {
  const program = fileURLToPath(import.meta.url);
  const child: ChildProcess = spawn(process.execPath, [...process.execArgv, program, database], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (!child.stdout) throw new Error('a replica has no pipe');
  const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return {
    url,
    stop: async () => {
      child.kill();
      await once(child, 'exit');
    },
  };
}

async function main(database: string): Promise<void> {
  const settings = {
    DATABASE_URL: database,
    RUNPLANE_PORT: '0',
    RUNPLANE_ROLES: 'api',
    LOG_LEVEL: 'error',
  };
  const app = await startApp({ config: readConfig(settings), log: silent, onProgress: () => {} });
  console.log(`${app.url}/graphql`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv[2] ?? '');
