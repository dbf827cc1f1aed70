import type { Queryable } from '../db/pool.ts';

export interface NewlyCounted {
  throttleId: string;
  /** Null: all that the throttle has. */
  agentIds: readonly string[] | null;
  /** What it did not count of them before. */
  tokens: boolean;
  requests: boolean;
}

/**
 * Counts what agents used in the last minute where a throttle counts it from now on, by the function fill_window
 * (drizzle/0005_results.sql). The throttle is locked and changed by then.
 */
export async function fillWindow(
  tx: Queryable,
  { throttleId, agentIds, tokens, requests }: NewlyCounted,
): Promise<void> {
  await tx.query({
    text: 'select runplane.fill_window($1, $2, $3, $4)',
    values: [throttleId, agentIds, tokens, requests],
  });
}
