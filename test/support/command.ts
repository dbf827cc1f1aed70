import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

export interface CommandOutcome {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs the command of the product to its end, as a process of its own. */
export async function runCommand(
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; input?: string; cwd?: string; program?: string } = {},
): Promise<CommandOutcome> {
  const { env = {}, input = '', cwd = root, program = `${root}bin/runplane.js` } = options;
  const child = spawn(process.execPath, [program, ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: 'pipe',
  });
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => (written[name] += text));
  child.stdin.on('error', () => {}); // It may end before it has read everything.
  child.stdin.end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...written };
}
