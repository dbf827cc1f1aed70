import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { toPublicId } from '../../src/domain/ids.ts';
import { unpackProduct } from '../support/packed.ts';
import { startTestServer } from '../support/server.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'runplane-package-'));
  // Without what the server depends on: the client must not need it.
  await unpackProduct(directory);
  await mkdir(join(directory, 'node_modules/@types'));
  await symlink(join(root, 'node_modules/@types/node'), join(directory, 'node_modules/@types/node'));
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }');
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const program = `import { type RunStatus, WatchError, watchAttemptEvents, watchRunChanges } from 'runplane/client';

const statuses: (RunStatus | string)[] = [];
const [, , url = '', after = '', runId = ''] = process.argv;
for await (const { changes } of watchRunChanges({ url, after, filter: { ids: [runId] } })) {
  for (const change of changes) statuses.push(change.toStatus);
}
for await (const { events } of watchAttemptEvents({ url, after, of: { runId } })) {
  for (const event of events) statuses.push(event.type);
}
if (!(WatchError.prototype instanceof Error)) throw new Error('no error');
console.log(statuses.join(' '));
`;

test('a program in an empty folder that has the packed package follows a run', async () => {
  const server = await startTestServer();
  const { plane } = server;
  await plane.agent('a');
  await plane.job('one', ['a']);
  const after = await plane.services.changeLog.currentCursor();
  const id = toPublicId('run', await plane.launch('one'));
  for (const task of await plane.claim(['a'])) {
    await plane.tell(task, [{ type: 'thought', data: { content: 'so' } }]);
    await plane.report(task, { status: 'COMPLETED' });
  }

  const javascript = program.replace('type RunStatus, ', '').replace(': (RunStatus | string)[]', '');
  await writeFile(join(directory, 'program.js'), javascript);
  const { stdout } = await run(process.execPath, ['program.js', server.url, after, id], { cwd: directory });
  expect(stdout.trim()).toBe('QUEUED RUNNING COMPLETED thought');
  await server.stop();
});

test.each(['nodenext', 'bundler'])(
  'its types serve a program that resolves modules as %s',
  async (resolution) => {
    await writeFile(join(directory, 'program.ts'), program);
    const module = resolution === 'bundler' ? 'esnext' : 'nodenext';
    const tsc = [join(root, 'node_modules/typescript/bin/tsc'), '--noEmit', '--strict', '--types', 'node'];
    await run(
      process.execPath,
      [...tsc, '--target', 'es2022', '--module', module, '--moduleResolution', resolution, 'program.ts'],
      { cwd: directory },
    );
  },
);
