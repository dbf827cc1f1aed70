import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** The tests of the product on a database, run in another environment. Answers the exit code and what was printed. */
export async function runSuite(env: NodeJS.ProcessEnv): Promise<{ code: number | null; output: string }> {
  const folders = ['test/flow', 'test/changelog', 'test/dispatch', 'test/operator', 'test/read'];
  const suite = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...folders], {
    env: { ...process.env, RUNPLANE_TEST_TIER: 'test', ...env },
  });
  let output = '';
  for (const stream of [suite.stdout, suite.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(suite, 'exit')) as [number | null];
  return { code, output };
}
