/** Which steps of a run wait for which others, as far as blocked tasks make them: a step is not over before its members. */
export class WaitGraph {
  readonly #waits: ReadonlyMap<string, ReadonlySet<string>>[];

  /** The edges of all these together. */
  constructor(...waits: ReadonlyMap<string, ReadonlySet<string>>[]) {
    this.#waits = waits;
  }

  next(step: string): string[] {
    return this.#waits.flatMap((waits) => [...(waits.get(step) ?? [])]);
  }

  /** Steps of a circle that can be reached from these, in order; null when there is none. */
  findCycle(from: Iterable<string>): string[] | null {
    const over = new Set<string>();
    for (const start of from) {
      // A path of steps, each with the ones that are left to follow; chains can be longer than the call stack.
      const path = [{ step: start, left: this.next(start) }];
      const onPath = new Set([start]);
      while (path.length > 0) {
        const at = path[path.length - 1] as (typeof path)[number];
        const step = over.has(at.step) ? undefined : at.left.pop();
        if (step === undefined) {
          over.add(at.step);
          onPath.delete(at.step);
          path.pop();
        } else if (onPath.has(step)) {
          const steps = path.map((entry) => entry.step);
          return [...steps.slice(steps.indexOf(step)), step];
        } else if (!over.has(step)) {
          path.push({ step, left: this.next(step) });
          onPath.add(step);
        }
      }
    }
    return null;
  }
}

/** These steps wait for those. */
export function addWaits(
  waits: Map<string, Set<string>>,
  memberOf: readonly string[],
  dependsOn: readonly string[],
): void {
  if (dependsOn.length === 0) return;
  for (const step of memberOf) {
    const known = waits.get(step);
    if (known) for (const name of dependsOn) known.add(name);
    else waits.set(step, new Set(dependsOn));
  }
}
