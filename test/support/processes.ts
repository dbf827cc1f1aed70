import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Process {
  child: ChildProcess;
  output: () => string;
  /** Settles with the exit code when it ends by itself. */
  ended: Promise<number | null>;
  /** Sends a signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Starts a script of this project, or the command in bin, and waits until it prints the word. */
export async function startProcess(
  script: string,
  args: string[],
  until: RegExp,
  env: NodeJS.ProcessEnv = {},
  cwd = root,
): Promise<Process> {
  const child = spawn(
    process.execPath,
    [...(script.endsWith('.ts') ? ['--import', 'tsx'] : []), script, ...args],
    {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  let output = '';
  await new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString();
      if (until.test(output)) resolve();
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('exit', (code) => reject(new Error(`${script} ended with ${code}: ${output}`)));
  });
  return {
    child,
    ended,
    output: () => output,
    end: async (signal) => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return ended;
    },
  };
}

export const startReplica = (url: string, ...args: string[]): Promise<Process> =>
  startProcess('test/support/replica.ts', [url, ...args], /ready/);
