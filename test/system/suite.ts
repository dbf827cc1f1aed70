import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** The tests of the product on a database. */
const onDatabase = [
  'test/flow',
  'test/changelog',
  'test/dispatch',
  'test/operator',
  'test/read',
  'test/scheduler',
  'test/model',
  'test/housekeeping',
];

/** Tests, run in another environment. Answers the exit code and what was printed. */
export async function runSuite(
  env: NodeJS.ProcessEnv,
  files: readonly string[] = onDatabase,
): Promise<{ code: number | null; output: string }> {
  const suite = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...files], {
    env: { ...process.env, RUNPLANE_TEST_TIER: 'test', ...env },
  });
  let output = '';
  for (const stream of [suite.stdout, suite.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(suite, 'exit')) as [number | null];
  return { code, output };
}
