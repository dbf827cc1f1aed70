import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** What a process has loaded of the packages of NATS after it imported these modules. */
function loadedBy(...modules: string[]): string[] {
  const script = `
    import { createRequire } from 'node:module';
    ${modules.map((module) => `await import('${module}');`).join('\n')}
    console.log(JSON.stringify(Object.keys(createRequire('file:///').cache).filter((name) => name.includes('@nats-io'))));`;
  const flags = ['--import', 'tsx', '--input-type=module', '--eval', script];
  return JSON.parse(execFileSync(process.execPath, flags, { encoding: 'utf8' })) as string[];
}

test('a server without NATS does not load the client of NATS', () => {
  expect(loadedBy('./src/app.ts', './src/cli/nats-setup.ts')).toEqual([]);
  expect(loadedBy('./src/ingest/ingest.ts')).not.toEqual([]);
}, 60_000);
