import { createContext, Script } from 'node:vm';

/** What ran was ended because it took too long. */
class TookTooLong extends Error {}

/** What ran was ended because work that came with it had used up the time of all. Alone it may succeed. */
export class BudgetSpent extends Error {}

/** Time for many pieces of such work together. A piece that comes when it is spent still gets a little. */
export class TimeBudget {
  #left: number;
  readonly #leastMs: number;
  #repeats = 0;

  constructor(milliseconds: number, leastMs: number) {
    this.#left = milliseconds;
    this.#leastMs = leastMs;
  }

  boundOf(milliseconds: number): number {
    return Math.ceil(Math.min(milliseconds, Math.max(this.#left, this.#leastMs)));
  }

  spend(milliseconds: number): void {
    this.#left -= milliseconds;
  }

  mayRepeat(): boolean {
    return this.#repeats++ < maxRepeatsOfAll;
  }
}

let current: TimeBudget | null = null;

/** Does synchronous work: every timeBound in it takes its time from the budget. */
export function withinBudget<T>(budget: TimeBudget, work: () => T): T {
  const outer = current;
  current = budget;
  try {
    return work();
  } finally {
    current = outer;
  }
}

const realm = createContext({ run: null as (() => unknown) | null });
const script = new Script('run()');
let inside = false;

/** How often work is begun anew that a busy machine kept waiting. */
const maxTries = 3;
/** And how often of all pieces that share a budget. */
const maxRepeatsOfAll = 20;

/**
 * Runs synchronous work of a user's making (templates, schemas, patterns), ended from outside after a time. It has no
 * effect but its answer: what hardly got the processor in its time is run again, so that a busy machine refuses nothing.
 */
export function timeBound<T>(milliseconds: number, run: () => T): T {
  // The outer bound holds already.
  if (inside) return run();
  const budget = current;
  const bound = budget?.boundOf(milliseconds) ?? milliseconds;
  realm.run = run;
  inside = true;
  try {
    for (let tries = 1; ; tries++) {
      const before = process.cpuUsage();
      const started = performance.now();
      try {
        return script.runInContext(realm, { timeout: bound }) as T;
      } catch (error) {
        // It comes from the other realm, so that instanceof does not know it.
        if ((error as { code?: unknown } | null)?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
        const { user, system } = process.cpuUsage(before);
        const ran = (user + system) / 1000;
        if (ran < bound / 2 && tries < maxTries && (budget?.mayRepeat() ?? true)) continue;
        throw bound < milliseconds
          ? new BudgetSpent(`it takes longer than ${bound} ms, which were left after other slow ones`)
          : new TookTooLong(`it takes longer than ${milliseconds} ms`);
      } finally {
        budget?.spend(performance.now() - started);
      }
    }
  } finally {
    realm.run = null;
    inside = false;
  }
}
