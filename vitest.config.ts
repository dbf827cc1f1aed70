import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { tier } from './test/support/tier.ts';

const excluded = {
  test: ['test/system/**'],
  system: [],
  soak: ['test/system/**/!(*-soak).test.ts'],
};

export default defineConfig({
  resolve: {
    alias: [
      // Node resolves `graphql` to index.js while Vite would choose index.mjs. Two copies of graphql in one
      // process reject each other's schemas, so both take index.js.
      {
        find: /^graphql$/,
        replacement: fileURLToPath(new URL('./node_modules/graphql/index.js', import.meta.url)),
      },
    ],
  },
  test: {
    include: tier === 'system' ? ['test/system/**/*.test.ts'] : ['test/**/*.test.ts'],
    exclude: excluded[tier],
    passWithNoTests: tier === 'system',
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: { test: 30_000, system: 60_000, soak: 600_000 }[tier],
    hookTimeout: 60_000,
    // What is waited for comes in milliseconds, or on a busy machine in seconds.
    expect: { poll: { timeout: 20_000 } },
    allowOnly: false,
  },
});
