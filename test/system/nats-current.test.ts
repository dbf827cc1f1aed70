import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { runSuite } from './suite.ts';

const go = [...(process.env.PATH ?? '').split(':'), '/usr/local/go/bin']
  .map((folder) => join(folder, 'go'))
  .find((program) => existsSync(program));

/** The newest nats-server, built from its source; where it is, for the next time. */
function currentNatsServer(program: string): string {
  const directory = resolve('node_modules/.cache/nats-server');
  execFileSync(program, ['install', 'github.com/nats-io/nats-server/v2@latest'], {
    env: { ...process.env, GOBIN: directory },
    stdio: 'pipe',
  });
  return join(directory, 'nats-server');
}

test.runIf(go !== undefined)(
  "everything that works with Debian's nats-server works with the newest one, where there is Go to build it",
  async () => {
    const names = ['nats', 'nats-streams', 'nats-faults', 'nats-incidents', 'nats-access', 'nats-setup'];
    const { code, output } = await runSuite(
      { RUNPLANE_TEST_TIER: 'system', RUNPLANE_TEST_NATS_SERVER: currentNatsServer(go ?? '') },
      names.map((name) => `test/system/${name}.test.ts`),
    );
    expect(code, output).toBe(0);
  },
  900_000,
);
