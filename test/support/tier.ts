/**
 * How much of the suite runs: `test` on every change, `system` for the tests that run the whole product
 * from outside (test/system), `soak` for the files of `test` with larger counts.
 */
const tiers = ['test', 'system', 'soak'] as const;

export type Tier = (typeof tiers)[number];

export const tier: Tier = readTier(process.env.RUNPLANE_TEST_TIER ?? 'test');

/** The number of runs, clients or jobs that a test uses in the current tier. */
export function count(counts: { test: number; soak: number }): number {
  return tier === 'soak' ? counts.soak : counts.test;
}

function readTier(name: string): Tier {
  const found = tiers.find((known) => known === name);
  if (found === undefined) {
    throw new Error(`RUNPLANE_TEST_TIER is "${name}"; it must be one of ${tiers.join(', ')}`);
  }
  return found;
}
