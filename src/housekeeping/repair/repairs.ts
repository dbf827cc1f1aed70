/** How often each kind of inconsistency was repaired. */
export interface Repairs {
  /** Runs that were not terminal though all their tasks were. */
  runs: number;
  /** Steps that were blocked though all that they depend on was over: enqueued, or failed. */
  unblockedTasks: number;
  /** Runs that counted their tasks wrongly. */
  counters: number;
  /** Open tasks that could not be claimed, waited for no time and were not executed: enqueued again, or cancelled. */
  placelessTasks: number;
  /** Places of tasks that are over, or that have a better one. */
  surplusPlaces: number;
  /** Leases of tasks that are over. */
  leases: number;
  /** Agents of which claims did not look at everything: leases were not counted, or ready tasks not found. */
  scanStarts: number;
  /** Runs whose repair failed; the next round tries again. */
  failed: number;
}

export const noRepairs: Readonly<Repairs> = {
  runs: 0,
  unblockedTasks: 0,
  counters: 0,
  placelessTasks: 0,
  surplusPlaces: 0,
  leases: 0,
  scanStarts: 0,
  failed: 0,
};

const kinds = Object.keys(noRepairs) as (keyof Repairs)[];

export function add(sum: Repairs, more: Partial<Repairs>): void {
  for (const kind of kinds) sum[kind] += more[kind] ?? 0;
}

export const isNothing = (repairs: Repairs): boolean => kinds.every((kind) => repairs[kind] === 0);
