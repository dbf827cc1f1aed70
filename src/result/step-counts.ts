/** A step of a run. */
export interface StepKey {
  runId: string;
  step: string;
}

/** What run_steps counts of a step. */
export interface StepCount {
  /** Members that are not terminal. */
  open: number;
  /** Members that ended other than COMPLETED and are not optional. */
  broken: number;
  /** Tasks that depend on the step and are not blocked. */
  joined: number;
}

/** A blocked task and a step that it waited for. */
export interface StepWait {
  run_id: string;
  step: string;
  task_id: string;
}

interface Entry {
  /** Null: it has no row yet. Undefined: nobody looked. */
  stored: StepCount | null | undefined;
  change: StepCount;
  /** A member was added: it has a row, whatever the counts add up to. */
  grown: boolean;
}

const none: StepCount = { open: 0, broken: 0, joined: 0 };

/** The steps of runs with spawned tasks, as they are stored and as the transaction at hand changes them. */
export class StepCounts {
  /** Tasks that are not blocked any more wait no more. */
  readonly ended: StepWait[] = [];
  readonly #runs = new Map<string, Map<string, Entry>>();

  change(runId: string, steps: readonly string[], by: Partial<StepCount>): void {
    for (const step of steps) {
      const entry = this.#entry(runId, step);
      const { change } = entry;
      if ((by.open ?? 0) > 0) entry.grown = true;
      change.open += by.open ?? 0;
      change.broken += by.broken ?? 0;
      change.joined += by.joined ?? 0;
    }
  }

  /** A task that depends on these steps is not blocked any more. */
  join(taskId: string, runId: string, dependsOn: readonly string[]): void {
    this.change(runId, dependsOn, { joined: 1 });
    for (const step of dependsOn) this.ended.push({ run_id: runId, step, task_id: taskId });
  }

  /** Of these, the ones whose stored counts were not read yet. */
  unread(keys: readonly StepKey[]): StepKey[] {
    const missing = new Map<Entry, StepKey>();
    for (const key of keys) {
      const entry = this.#entry(key.runId, key.step);
      if (entry.stored === undefined) missing.set(entry, key);
    }
    return [...missing.values()];
  }

  /** What was read of the steps that were asked for. */
  learn(asked: readonly StepKey[], rows: readonly (StepKey & StepCount)[]): void {
    for (const { runId, step } of asked) this.#entry(runId, step).stored = null;
    for (const { runId, step, ...stored } of rows) this.#entry(runId, step).stored = stored;
  }

  /** Null: the run has no task of that step. */
  find(runId: string, step: string): StepCount | null {
    const { stored, change, grown } = this.#entry(runId, step);
    if (stored === undefined) throw new Error(`The counts of step ${step} were not read.`);
    if (stored === null && !grown) return null;
    const { open, broken, joined } = stored ?? none;
    return {
      open: open + change.open,
      broken: broken + change.broken,
      joined: joined + change.joined,
    };
  }

  /** Rows of what changed, as the SQL that applies them names them. */
  changes(): ({ run_id: string; step: string } & StepCount)[] {
    return [...this.#runs].flatMap(([run_id, steps]) =>
      [...steps].flatMap(([step, { change, grown }]) =>
        grown || change.open !== 0 || change.broken !== 0 || change.joined !== 0
          ? { run_id, step, ...change }
          : [],
      ),
    );
  }

  #entry(runId: string, step: string): Entry {
    const steps = this.#runs.get(runId) ?? new Map<string, Entry>();
    this.#runs.set(runId, steps);
    const entry = steps.get(step) ?? { stored: undefined, change: { ...none }, grown: false };
    steps.set(step, entry);
    return entry;
  }
}
