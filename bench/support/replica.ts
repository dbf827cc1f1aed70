import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startProduct } from './product.ts';

/*
 * A process of its own that executes the job `noop`. Run as a program it says that it is loaded, begins when it is
 * told to, and stops when its input ends.
 */

export interface Replica {
  begin(): void;
  stop(): Promise<void>;
}

export async function spawnReplica(url: string): Promise<Replica> {
  const program = fileURLToPath(import.meta.url);
  const child: ChildProcess = spawn(process.execPath, [...process.execArgv, program, url], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const { stdin, stdout } = child;
  if (!stdin || !stdout) throw new Error('a replica has no pipes');
  await once(stdout, 'data');
  return {
    begin: () => void stdin.write('begin\n'),
    stop: async () => {
      stdin.end();
      const [code] = (await once(child, 'exit')) as [number | null];
      if (code !== 0) throw new Error(`a replica ended with ${code}`);
    },
  };
}

async function main(url: string): Promise<void> {
  let number = 0;
  const usage = () => [
    {
      model: 'model-1',
      inputTokens: 1200,
      outputTokens: 300,
      cost: '0.0042',
      responseId: `${process.pid}-${number++}`,
    },
  ];
  console.log('loaded');
  await once(process.stdin, 'data');
  const services = await startProduct(url, () => ({ output: { done: true }, usage: usage() }));
  process.stdin.resume();
  await once(process.stdin, 'end');
  await services.stop();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv[2] ?? '');
