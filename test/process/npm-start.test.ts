import { execFile } from 'node:child_process';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startProcess } from '../support/processes.ts';

test('npm start stops in good order when npm is told to stop', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'runplane-npm-'));
  const { stdout } = await promisify(execFile)('which', ['npm']);
  const npm = await startProcess(await realpath(stdout.trim()), ['start'], /runplane ready/, {
    RUNPLANE_DATA_DIR: join(directory, 'data'),
    RUNPLANE_PORT: '0',
  });
  await npm.end('SIGTERM');
  expect(npm.output()).toMatch(/runplane: stopped/);
  await rm(directory, { recursive: true, force: true });
});
